(* The tactic [fring] decides equations in an ordered field of mathcomp by Coq's [ring]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Operations.
Variable F : realFieldType.
Definition radd (x y : F) : F := x + y.
Definition rmul (x y : F) : F := x * y.
Definition ropp (x : F) : F := - x.
Definition rsub (x y : F) : F := x - y.
Definition rzero : F := 0.
Definition rone : F := 1.

Lemma field_is_ring : ring_theory rzero rone radd rmul rsub ropp (@eq F).
Proof.
split; rewrite /radd /rmul /ropp /rsub /rzero /rone //.
- exact: add0r.
- exact: addrC.
- exact: addrA.
- exact: mul1r.
- exact: mulrC.
- exact: mulrA.
- exact: mulrDl.
- exact: subrr.
Qed.
End Operations.

Ltac fold_field F :=
  repeat match goal with
  | |- context [@GRing.add _ ?x ?y] => change (@GRing.add _ x y) with (@radd F x y)
  | |- context [@GRing.mul _ ?x ?y] => change (@GRing.mul _ x y) with (@rmul F x y)
  | |- context [@GRing.opp _ ?x] => change (@GRing.opp _ x) with (@ropp F x)
  | |- context [@GRing.zero _] => change (@GRing.zero _) with (@rzero F)
  | |- context [@GRing.one _] => change (@GRing.one _) with (@rone F)
  end.

Ltac fring F :=
  rewrite ?expr2; fold_field F;
  match goal with |- @eq _ ?a ?b => change (@eq (Num.RealField.sort F) a b) end; ring.
