(* Printed errors of the papers, refuted by small counterexamples over the rational numbers. The
   labels D1, D3, M3, N4, R1, F1, F2 are those of docs/papers.md. In each, r stands for the e^epsilon
   that is printed. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring.
From Panprivacy Require Import Ring Model Bits Releases Local.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* D1 (Digalakis et al., Algorithms 1 to 3; Dwork et al. as quoted). Printed: the estimate has
   sensitivity 1/m. One bit moves it by 4/(epsilon m), which is 4 units at epsilon = 1. So noise that
   hides one unit does not hide one bit. *)
Theorem refuted_D1 : ~ (forall (x : int) (bit : bool),
  laplace (2%:R^-1 : rat) (if bit then 4 else 0) x <= 2%:R * laplace (2%:R^-1 : rat) 0 x).
Proof. by move/(_ 4 true); vm_compute. Qed.

(* D3 (Digalakis et al., Algorithm 3). k appearances of a user leave the level unchanged with
   probability at most 2^-k, and with probability 1 if the user is absent: no r is large enough. *)
Theorem refuted_D3 : ~ exists r : rat, forall k : nat, 1 <= r * (2%:R^-1) ^+ k.
Proof.
case=> r all; have := all (Num.bound r); rewrite exprVn ler_pdivl_mulr ?exprn_gt0 // mul1r leNgt.
by rewrite (upper_nthrootP (leqnn _)).
Qed.

(* M3 (Mir et al.). Under replacement two cells change, each by a factor of r. *)
Theorem refuted_M3 : ~ (forall x y : bool,
  coin (2%:R / 3%:R : rat) x * coin (1 / 3%:R) y
  <= 2%:R * (coin (1 / 3%:R) x * coin (2%:R / 3%:R) y)).
Proof. by move/(_ true false); vm_compute. Qed.

(* N4 (Naor). An increment moves log2(n) + 1 registers, each with noise that hides one unit. *)
Theorem refuted_N4 : ~ (forall x : 'I_2 -> int,
  \prod_i laplace (2%:R^-1 : rat) 1 (x i) <= 2%:R * \prod_i laplace (2%:R^-1 : rat) 0 (x i)).
Proof. by move/(_ (fun=> 1)); rewrite !big_ord_recl !big_ord0; vm_compute. Qed.

(* R1 (Dwork and Roth). A present bit is 1 with probability 1/2 + e, an absent one with 1/2. This is
   called e-private. At e = 1/4 the ratio is 2, and e^(1/4) < 4/3, as e^x <= 1/(1 - x). *)
Theorem refuted_R1 : ~ (forall x : bool,
  coin (1 / 2%:R : rat) x <= 4%:R / 3%:R * coin (3%:R / 4%:R) x).
Proof. by move/(_ false); vm_compute. Qed.

(* F1 (Feldman et al., Algorithms 5 and 6). Printed: the value is kept with probability 2/(r + 1), and
   else replaced by a fair coin. At r = 2 the ratio of a report is 5. *)
Definition printed_F1 (r : rat) (value report : bool) : rat :=
  response (2%:R / (r + 1)) value report.

Theorem refuted_F1 : ~ (forall v v' w : bool, printed_F1 2%:R v w <= 2%:R * printed_F1 2%:R v' w).
Proof. by move/(_ true false true); rewrite /printed_F1 /response !card_bool; vm_compute. Qed.

(* What holds instead: keep with probability (r - 1)/(r + 1). *)
Theorem mended_F1 : forall v v' w : bool,
  response (1 / 3%:R : rat) v w <= 2%:R * response (1 / 3%:R) v' w.
Proof. by move=> [] [] []; rewrite /response !card_bool; vm_compute. Qed.

(* F2 (Feldman et al., Theorem 11). All of epsilon on each bit of a histogram: two values differ in
   two bits, so a report loses 2 epsilon. *)
Theorem refuted_F2 : ~ (forall x y : bool,
  coin (2%:R / 3%:R : rat) x * coin (1 / 3%:R) y
  <= 2%:R * (coin (1 / 3%:R) x * coin (2%:R / 3%:R) y)).
Proof. exact: refuted_M3. Qed.
