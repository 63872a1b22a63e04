(* The local model: each user draws a report; neighbours differ in the value of one user. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring.
From Panprivacy Require Import Ring Model.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Local.

Variable F : realFieldType.
Add Ring Fring : (field_is_ring F).

(* Randomised response on k values: the value with probability q, else uniform. *)
Definition response (V : finType) (q : F) (value report : V) : F :=
  q * (report == value)%:R + (1 - q) / #|V|%:R.

Theorem randomised_response (V : finType) (q : F) (v v' w : V) :
  0 <= q -> q < 1 -> response q v w <= (1 + q * #|V|%:R / (1 - q)) * response q v' w.
Proof.
move=> q0 q1; have V0 : 0 < #|V|%:R :> F by rewrite ltr0n; apply/card_gt0P; exists v.
have p0 : 0 < 1 - q by rewrite subr_gt0.
have base : 0 < (1 - q) / #|V|%:R by rewrite divr_gt0.
have r0 : 0 <= q * #|V|%:R / (1 - q) by apply: divr_ge0; [apply: mulr_ge0 => //; apply: ltW | apply: ltW].
have low : (1 - q) / #|V|%:R <= response q v' w by rewrite /response ler_addr mulr_ge0 ?ler0n.
have high : response q v w <= q + (1 - q) / #|V|%:R.
  by rewrite ler_add2r -{2}[q]mulr1 ler_wpmul2l // lern1 leq_b1.
apply: (le_trans high); apply: le_trans (ler_wpmul2l (addr_ge0 ler01 r0) low).
rewrite [X in _ <= X]mulrDl mul1r [X in _ <= X]addrC ler_add2r -[q * _ / _ * _]mulrA mulKf ?gt_eqF //.
by rewrite mulfK ?gt_eqF.
Qed.

(* A chosen set of reports for each value: a uniform one of the set with probability q, else a uniform
   one of all. A Hadamard response has half of the columns of one block of B, so 1 + 2 q B/(1-q). *)
Definition subset_response (V R : finType) (chosen : V -> {set R}) (s : nat) (q : F) (value : V) (report : R) : F :=
  q * (report \in chosen value)%:R / s%:R + (1 - q) / #|R|%:R.

Theorem response_of_a_set (V R : finType) (chosen : V -> {set R}) (s : nat) (q : F) (v v' : V) (w : R) :
  (0 < s)%N -> 0 <= q -> q < 1 ->
  subset_response chosen s q v w
  <= (1 + q * #|R|%:R / (s%:R * (1 - q))) * subset_response chosen s q v' w.
Proof.
move=> s0 q0 q1; have R0 : 0 < #|R|%:R :> F by rewrite ltr0n; apply/card_gt0P; exists w.
have p0 : 0 < 1 - q by rewrite subr_gt0.
have S0 : 0 < s%:R :> F by rewrite ltr0n.
have k0 : 0 <= q * #|R|%:R / (s%:R * (1 - q)) by apply: divr_ge0; apply: mulr_ge0; rewrite // ltW.
have low : (1 - q) / #|R|%:R <= subset_response chosen s q v' w.
  by rewrite /subset_response ler_addr divr_ge0 ?mulr_ge0 ?ler0n.
have high : subset_response chosen s q v w <= q / s%:R + (1 - q) / #|R|%:R.
  rewrite ler_add2r; apply: ler_wpmul2r; first by rewrite invr_ge0 ltW.
  by rewrite -{2}[q]mulr1 ler_wpmul2l // lern1 leq_b1.
apply: (le_trans high); apply: le_trans (ler_wpmul2l (addr_ge0 ler01 k0) low).
rewrite [X in _ <= X]mulrDl mul1r [X in _ <= X]addrC ler_add2r.
have -> : q * #|R|%:R / (s%:R * (1 - q)) * ((1 - q) / #|R|%:R)
    = q / s%:R * ((1 - q) / (1 - q)) * (#|R|%:R / #|R|%:R).
  rewrite invfM; move: (#|R|%:R : F) (s%:R : F) (1 - q) => n m u.
  by move: (n^-1) (m^-1) (u^-1) => i j k; fring F.
by rewrite !divff ?gt_eqF // !mulr1.
Qed.

(* A value that is drawn by coins first, as that of a share is: the law of a report is a mean of laws
   of reports, so it costs no more. *)
Theorem mean_of_reports (V R : finType) (law : V -> R -> F) (r : F) (mu mu' : V -> F) (w : R) :
  is_law mu -> is_law mu' -> (forall v v', law v w <= r * law v' w) ->
  \sum_v mu v * law v w <= r * (\sum_v mu' v * law v w).
Proof.
move=> [mu0 mu1] [mu'0 mu'1] ratio.
rewrite -[X in X <= _]mulr1 -mu'1 -[X in _ <= r * X]mul1r -mu1.
rewrite mulr_suml mulr_suml mulr_sumr; apply: ler_sum => v _.
rewrite !mulr_sumr; apply: ler_sum => v' _.
have -> : mu v * law v w * mu' v' = mu v * mu' v' * law v w by fring F.
have -> : r * (mu v * (mu' v' * law v' w)) = mu v * mu' v' * (r * law v' w) by fring F.
by apply: ler_wpmul2l; rewrite ?mulr_ge0.
Qed.

(* Unary encoding: one bit for each value, all independent. The user's own is 1 with probability
   1/2, any other with probability r. *)
Definition unary_bit (r : F) (own bit : bool) : F :=
  if own then 2%:R^-1 else if bit then r else 1 - r.

Definition unary (V : finType) (r : F) (value : V) (report : {ffun V -> bool}) : F :=
  \prod_w unary_bit r (w == value) (report w).

Theorem unary_encoding (V : finType) (r : F) (v v' : V) (report : {ffun V -> bool}) :
  0 < r -> r <= 1 - r -> unary r v report <= (1 - r) / r * unary r v' report.
Proof.
move=> r0 half; have p0 : 0 < 1 - r by apply: lt_le_trans half.
have bit0 own b : 0 < unary_bit r own b.
  by rewrite /unary_bit; case: own; case: b; rewrite ?invr_gt0 ?ltr0n.
have ge1 : 1 <= (1 - r) / r by rewrite ler_pdivl_mulr // mul1r.
have [->|ne] := eqVneq v v'.
  by rewrite ler_pemull // ltW // prodr_gt0.
have ne' : v' != v by rewrite eq_sym.
rewrite /unary (bigD1 v) //= (bigD1 v') //= [X in _ <= _ * X](bigD1 v) //=.
rewrite [X in _ <= _ * (_ * X)](bigD1 v') //= !eqxx (negPf ne) (negPf ne').
set rest := \prod_(i | _) _; set rest' := \prod_(i | _) _.
have -> : rest' = rest.
  by apply: eq_bigr => w /andP [a b]; rewrite (negPf a) (negPf b).
have rest0 : 0 <= rest by rewrite ltW // prodr_gt0.
rewrite !mulrA; apply: ler_wpmul2r => //; rewrite /unary_bit.
have h0 : 0 <= 2%:R^-1 :> F by rewrite invr_ge0 ler0n.
rewrite mulrC; apply: ler_wpmul2r => //.
case: (report v); case: (report v'); rewrite ?divfK ?gt_eqF //.
- by rewrite mulrAC ler_pdivl_mulr // ler_pmul // ltW.
- by rewrite ler_pemull // ltW.
Qed.

End Local.
