(* Post-processing, composition, and several statistics under one ledger. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Panprivacy Require Import Model.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section PostProcessing.

Variable F : realFieldType.

(* Whatever is computed from what was seen loses no more. [P] and [Q] are the weights of what is
   seen under two streams, on any finite list of outcomes; [g z w] is the probability that the
   computation makes w of z. With infinitely many outcomes it holds of each finite part. *)
Theorem post_processing (Z W : Type) (P Q : Z -> F) (g : Z -> W -> F) (r : F) (s : seq Z) (w : W) :
  (forall z v, 0 <= g z v) -> (forall z, P z <= r * Q z) ->
  \sum_(z <- s) P z * g z w <= r * \sum_(z <- s) Q z * g z w.
Proof.
move=> g0 ratio; rewrite mulr_sumr; apply: ler_sum => z _.
by rewrite mulrA; apply: ler_wpmul2r.
Qed.

(* The same for sets of outcomes: an event is at most r times as likely. *)
Corollary ratio_of_events (Z : Type) (P Q : Z -> F) (r : F) (s : seq Z) (E : pred Z) :
  (forall z, P z <= r * Q z) -> \sum_(z <- s | E z) P z <= r * \sum_(z <- s | E z) Q z.
Proof. by move=> ratio; rewrite mulr_sumr; apply: ler_sum => z _. Qed.

(* Adaptive composition of two mechanisms: the second may depend on what the first one said. *)
Theorem composition (Z W : Type) (P P' : Z -> F) (Q Q' : Z -> W -> F) (r q : F) z w :
  0 <= r -> (forall x, 0 <= P x) -> (forall x, 0 <= P' x) ->
  (forall x y, 0 <= Q x y) -> (forall x y, 0 <= Q' x y) ->
  (forall x, P x <= r * P' x) -> (forall x y, Q x y <= q * Q' x y) ->
  P z * Q z w <= (r * q) * (P' z * Q' z w).
Proof.
move=> r0 p0 p0' q0 q0' rp rq.
apply: (le_trans (ler_pmul (p0 z) (q0 z w) (rp z) (rq z w))).
by rewrite mulrACA.
Qed.

(* Users one after another: a neighbour of a neighbour. Moving rows to another user is one removal
   and one addition; who is in g shards loses g times. *)
Theorem group_of_two (Z : Type) (P Q R : Z -> F) (r q : F) :
  0 <= r -> (forall z, P z <= r * Q z) -> (forall z, Q z <= q * R z) ->
  forall z, P z <= (r * q) * R z.
Proof.
move=> r0 pq qr z; apply: (le_trans (pq z)); rewrite -mulrA; exact: ler_wpmul2l.
Qed.

Theorem group_privacy (Z : Type) (P : nat -> Z -> F) (r : F) (g : nat) :
  0 <= r -> (forall n z, P n z <= r * P n.+1 z) -> forall z, P 0%N z <= r ^+ g * P g z.
Proof.
move=> r0 step z; elim: g => [|g IH]; first by rewrite expr0 mul1r.
apply: (le_trans IH); rewrite exprSr -mulrA; apply: ler_wpmul2l; last exact: step.
by rewrite exprn_ge0.
Qed.

End PostProcessing.

