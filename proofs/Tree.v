(* The twice-noised tree of a running count: event level, one intrusion.

   A node begins with noise, adds what its steps add, and leaves once, with fresh noise. The event is in
   the nodes of its step, at most one in each level. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Panprivacy Require Import Releases.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Tree.

Variables (F : realFieldType) (N : finType).   (* N: the nodes *)
Variable q : N -> F.                           (* q j = e^(-1/scale) of node j *)
Hypothesis q0 : forall j, 0 < q j.
Hypothesis q1 : forall j, q j <= 1.

(* The noise of each node: that at its beginning, and that with which it leaves. *)
Definition noise := {ffun N -> int * int}.
Definition node_weight (r : F) (z : int * int) : F := laplace r 0 z.1 * laplace r 0 z.2.
Definition noise_weight (z : noise) : F := \prod_j node_weight (q j) (z j).

(* What is seen: the sum of each node at the look, and that with which it leaves. Where a node was not
   open at the look, the adversary sees less than here. *)
Definition tree_view (kept sums : N -> int) (z : noise) : {ffun N -> int * int} :=
  [ffun j => (kept j + (z j).1, sums j + (z j).1 + (z j).2)].

(* The noise that makes up for the event: that of the beginning if the event came before the look,
   that of leaving if it came after it. *)
Definition shift (before : bool) (has : pred N) (d : int) (z : noise) : noise :=
  [ffun j => if has j then if before then ((z j).1 - d, (z j).2) else ((z j).1, (z j).2 - d) else z j].

Lemma shiftK before has d z : shift before has (- d) (shift before has d z) = z.
Proof.
apply/ffunP=> j; rewrite !ffunE; case: (has j) => //.
by case: before => /=; rewrite opprK subrK; case: (z j).
Qed.

Lemma laplace_shift (r : F) (x d : int) : 0 < r -> r <= 1 ->
  laplace r 0 x <= r^-1 ^+ absz d * laplace r 0 (x - d).
Proof.
move=> r0 r1; apply: le_trans (discrete_laplace 0 d x r0 r1) _.
by rewrite /laplace subr0 sub0r abszN.
Qed.

Lemma weight_shift before has d z :
  noise_weight z <= (\prod_(j | has j) (q j)^-1 ^+ absz d) * noise_weight (shift before has d z).
Proof.
rewrite big_mkcond -big_split /=; apply: ler_prod => j _.
have w0 x : 0 <= laplace (q j) 0 x by rewrite ltW // laplace_gt0.
rewrite /node_weight mulr_ge0 //= ffunE; case: (has j); last by rewrite mul1r.
by case: before => /=; [rewrite mulrA | rewrite mulrCA]; rewrite ?ler_wpmul2r ?ler_wpmul2l ?laplace_shift.
Qed.

(* THE TWICE-NOISED TREE. For each finite part of the noise that shows a view under one stream, there is
   as much noise, up to the product of q^-|d| over the nodes of the event, that shows the same view
   under the other stream, in which one event adds d more. So no sum over all noise is needed. *)
Theorem twice_noised_tree before has (d : int) kept sums kept' sums' (s : seq noise) v :
  (forall j, kept' j = kept j + (if has j && before then d else 0)) ->
  (forall j, sums' j = sums j + (if has j then d else 0)) ->
  uniq s -> (forall z, z \in s -> tree_view kept sums z = v) ->
  exists s', [/\ uniq s', forall z, z \in s' -> tree_view kept' sums' z = v &
    \sum_(z <- s) noise_weight z
    <= (\prod_(j | has j) (q j)^-1 ^+ absz d) * \sum_(z <- s') noise_weight z].
Proof.
move=> keptE sumsE us sv; exists (map (shift before has d) s); split.
- by rewrite map_inj_uniq //; apply: can_inj (shiftK before has d).
- move=> _ /mapP [z /sv <- ->]; apply/ffunP=> j; rewrite !ffunE keptE sumsE.
  have cancel (x y : int) : x + d + (y - d) = x + y by rewrite addrACA subrr addr0.
  case: (has j); rewrite /= ?addr0 //; case: (before); rewrite /= ?cancel //.
  by rewrite addr0 [sums j + d + _]addrAC cancel.
- by rewrite big_map mulr_sumr; apply: ler_sum => z _; apply: weight_shift.
Qed.

End Tree.
