(* Noise of releases: discrete Laplace. Its weight at k is q^|k|, which changes by a factor of 1/q at
   each step. It is a weight on all integers, so no sum is needed. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring.
From Panprivacy Require Import Ring Model.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Laplace.

Variable F : realFieldType.

(* The weight of answer x where the true number is c; q = e^(-1/scale). *)
Definition laplace (q : F) (c x : int) : F := q ^+ absz (x - c).

Lemma laplace_gt0 q c x : 0 < q -> 0 < laplace q c x.
Proof. exact: exprn_gt0. Qed.

(* DISCRETE LAPLACE. A number that moves by d changes the law of its answer by a factor of at most
   q^-d, at each of infinitely many answers. *)
Theorem discrete_laplace (q : F) (c c' x : int) : 0 < q -> q <= 1 ->
  laplace q c x <= q^-1 ^+ absz (c - c') * laplace q c' x.
Proof.
move=> q0 q1; rewrite /laplace exprVn ler_pdivl_mull ?exprn_gt0 // -exprD.
apply: ler_wiexpn2l => //; first exact: ltW.
have -> : x - c' = (x - c) + (c - c') by rewrite addrA subrK.
by rewrite addnC -lez_nat PoszD !abszE ler_norm_add.
Qed.

(* Several numbers, each with noise of its own: the exponents add up. *)
Theorem laplace_numbers n (q : 'I_n -> F) (c c' x : 'I_n -> int) :
  (forall i, 0 < q i) -> (forall i, q i <= 1) ->
  \prod_i laplace (q i) (c i) (x i)
  <= (\prod_i (q i)^-1 ^+ absz (c i - c' i)) * (\prod_i laplace (q i) (c' i) (x i)).
Proof.
move=> q0 q1; rewrite -big_split /=; apply: ler_prod => i _.
by rewrite discrete_laplace // ltW // laplace_gt0.
Qed.

(* A count that one cell moves by at most 1, with noise of scale 1/epsilon: any two values of the
   cell have weights that differ by a factor of at most 1/q = e^epsilon. *)
Theorem release_of_a_count (X : Type) (q : F) (count : X -> int) (x : int) :
  0 < q -> q <= 1 -> (forall u v, absz (count u - count v) <= 1)%N ->
  forall u v, laplace q (count u) x <= q^-1 * laplace q (count v) x.
Proof.
move=> q0 q1 one u v; apply: le_trans (discrete_laplace _ (count v) _ q0 q1) _.
apply: ler_wpmul2r; first by rewrite ltW // laplace_gt0.
have [z|z] := posnP (absz (count u - count v)); first by rewrite z expr0 invf_ge1.
by have -> : absz (count u - count v) = 1%N by apply/eqP; rewrite eqn_leq one.
Qed.

End Laplace.
