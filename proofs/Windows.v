(* A window that nobody saw: the noise of the state works on top of that of the release. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring.
From Panprivacy Require Import Ring Model.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Unseen.

Variables (F : realFieldType) (X : finType).
Add Ring Fring : (field_is_ring F).

Lemma le_by (x y x' y' : F) : x <= y -> y' - x' = y - x -> x' <= y'.
Proof. by move=> le e; rewrite -subr_ge0 e subr_ge0. Qed.

(* THE WINDOW THAT NOBODY SAW. P and Q are the laws of the user's cell under two streams, which differ
   by a factor of at most a; an answer has the probability W x when the cell is x, and W differs by a
   factor of at most b. If nobody sees the cell, the answer is at most (1 + a b)/(a + b) times as
   likely. *)
Theorem unseen_window (a b w : F) (P Q W : X -> F) :
  1 <= a -> 1 <= b -> 0 <= w -> is_law P -> is_law Q ->
  (forall x, P x <= a * Q x) -> (forall x, Q x <= a * P x) ->
  (forall x, w <= W x) -> (forall x, W x <= b * w) ->
  (a + b) * (\sum_x P x * W x) <= (1 + a * b) * (\sum_x Q x * W x).
Proof.
move=> a1 b1 w0 [P0 P1] [Q0 Q1] PQ QP lo hi.
have a0 : 0 <= a by apply: le_trans ler01 a1.
(* W = lo + (hi - lo): the part above w counts for its user, the part below b w against. *)
pose up x := W x - w; pose down x := b * w - W x.
have tot (L : X -> F) c : \sum_x L x = 1 -> \sum_x L x * c = c.
  by rewrite -mulr_suml => ->; rewrite mul1r.
have sW (L : X -> F) : \sum_x L x = 1 -> \sum_x L x * W x = w + \sum_x L x * up x.
  move=> L1; rewrite -[w in RHS](tot L w L1) -big_split; apply: eq_bigr => x _ /=.
  by rewrite -mulrDr addrC subrK.
have sD (L : X -> F) : \sum_x L x = 1 -> \sum_x L x * down x = (b * w - w) - \sum_x L x * up x.
  move=> L1; rewrite -[b * w - w](tot L _ L1) -sumrB; apply: eq_bigr => x _ /=.
  by rewrite -mulrBr /down /up opprB addrA subrK.
rewrite !sW //; have := sD P P1; have := sD Q Q1.
set p := \sum_x P x * up x; set q := \sum_x Q x * up x => dQ dP.
have pq : p <= a * q.
  rewrite /q mulr_sumr; apply: ler_sum => x _; rewrite mulrA; apply: ler_wpmul2r => //.
  by rewrite subr_ge0.
have qp : b * w - w - q <= a * (b * w - w - p).
  rewrite -dP -dQ mulr_sumr; apply: ler_sum => x _; rewrite mulrA; apply: ler_wpmul2r => //.
  by rewrite subr_ge0.
(* b times the first plus the second, which is what is claimed. *)
have both : b * p + (b * w - w - q) <= b * (a * q) + a * (b * w - w - p).
  by apply: ler_add => //; apply: ler_wpmul2l => //; apply: le_trans ler01 b1.
apply: (le_by both); fring F.
Qed.

End Unseen.
