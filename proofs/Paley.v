(* What makes the accuracy true. Residues modulo a prime that is 3 modulo 4 meet each shift of
   themselves equally often, and under a block law on such a set the number of cells that count is
   exactly affine in the cropped sum. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Residues.

Variable K : finFieldType.
Variable D : {set K}.                       (* the quadratic residues without 0 *)

Hypothesis residues_mul : forall s x, s \in D -> (s * x \in D) = (x \in D).
Hypothesis no_zero : 0 \notin D.
Hypothesis or_minus : forall x, x != 0 -> (x \in D) || (- x \in D).

(* How many members stay members when d is taken away. *)
Definition shared (d : K) : nat := #|[set x in D | x - d \in D]|.

Lemma shared_scale s d : s \in D -> shared (s * d) = shared d.
Proof.
move=> sD; have s0 : s != 0 by apply: contraNneq no_zero => <-.
rewrite /shared -[RHS](card_imset _ (mulfI s0)); apply: eq_card => x; rewrite inE.
apply/andP/imsetP => [[xD xdD]|[y]].
  exists (x / s); last by rewrite mulrC divfK.
  rewrite inE -(residues_mul _ sD) -[in X in _ && X](residues_mul _ sD) mulrBr.
  by rewrite ![s * (x / s)]mulrC divfK // xD.
by rewrite inE => /andP [yD ydD] ->; rewrite -mulrBr !residues_mul.
Qed.

Lemma shared_opp d : shared (- d) = shared d.
Proof.
rewrite /shared -[RHS](card_imset _ (addIr (- d))); apply: eq_card => x; rewrite inE.
apply/andP/imsetP => [[xD xdD]|[y]].
  by exists (x + d); rewrite ?addrK // inE addrK xD andbT; rewrite opprK in xdD.
by rewrite inE => /andP [yD ydD] ->; rewrite opprK subrK.
Qed.

(* PALEY. Each shift but 0 shares equally many members. *)
Theorem paley_residues (d e : K) : d != 0 -> e != 0 -> shared d = shared e.
Proof.
have one x : x != 0 -> shared x = shared 1.
  move=> x0; case/orP: (or_minus x0) => [xD|xD]; first by rewrite -{1}[x]mulr1 shared_scale.
  by rewrite -shared_opp -{1}[- x]mulr1 shared_scale.
by move=> d0 e0; rewrite one // [RHS]one.
Qed.

End Residues.
