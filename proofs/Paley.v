(* What makes the accuracy true. Residues modulo a prime that is 3 modulo 4 meet each shift of
   themselves equally often, and under a block law on such a set the number of cells that count is
   exactly affine in the cropped sum. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring.
From Panprivacy Require Import Ring.

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

(* Block laws. The values of a cell are the numbers below tau b, in b blocks of tau values one after
   another: a block, and a place in it. Values of the blocks in D are high: their noise is r times as
   likely. A cell counts if it is not high. *)
Section Blocks.

Variables (F : realFieldType) (b' t : nat).
Notation b := b'.+2.
Notation tau := t.+1.
Notation value := ('I_b * 'I_tau)%type.
Variables (D : {set 'I_b}) (l : nat) (r : F).
Add Ring Fring : (field_is_ring F).

(* Each shift of D but 0 shares l blocks with D: a difference set. *)
Definition common (i : 'I_b) : nat := #|[set k in D | k + i \in D]|.
Hypothesis difference_set : forall i, i != 0 -> common i = l.

Definition high (k : 'I_b) : bool := k \in D.
Definition noise (x : value) : F := if high x.1 then r else 1.

(* The block of x + a. *)
Definition carried (a : nat) (v : 'I_tau) : nat := (a %/ tau + (tau <= v + a %% tau))%N.
Definition moved (a : nat) (x : value) : 'I_b := x.1 + (carried a x.2)%:R.

Lemma moved_is_the_block a (x : value) :
  (x.1 + carried a x.2 = (x.1 * tau + x.2 + a) %/ tau)%N.
Proof.
rewrite [in RHS](divn_eq a tau) addnACA -mulnDl divnMDl // /carried addnA; congr (_ + _)%N.
have : (x.2 + a %% tau < 2 * tau)%N.
  rewrite mul2n -addnn; apply: (@leq_trans (x.2 + tau)); first by rewrite ltn_add2l ltn_pmod.
  by rewrite leq_add2r ltnW.
case: (ltnP t (x.2 + a %% tau)) => [le lt|lt _]; last by rewrite divn_small.
by apply/esym/eqP; rewrite eqn_leq leq_divRL // mul1n le andbT -ltnS ltn_divLR.
Qed.

(* The probability that the cell of a user in state a counts. *)
Definition counted (a : nat) : F :=
  (\sum_x noise x * (~~ high (moved a x))%:R) / \sum_x noise x.

Notation d := (#|D|%:R : F).
Notation weight_of_all := (b%:R + (r - 1) * d).
Definition absent : F := (b%:R - d) / weight_of_all.
Definition contrast : F := (r - 1) * (d - l%:R) / weight_of_all.

Hypothesis weights : 0 < weight_of_all.

Lemma sum_values (G : value -> F) : \sum_x G x = \sum_(v < tau) \sum_(k < b) G (k, v).
Proof. by rewrite exchange_big pair_big /=; apply: eq_bigr => -[k v]. Qed.

Lemma count_of (A : {set 'I_b}) : \sum_k (k \in A)%:R = #|A|%:R :> F.
Proof. by rewrite -sum1_card natr_sum [RHS]big_mkcond; apply: eq_bigr => k _; case: (_ \in _). Qed.

Lemma all_noise : \sum_x noise x = tau%:R * weight_of_all.
Proof.
rewrite sum_values (eq_bigr (fun=> weight_of_all)) => [|v _].
  by rewrite sumr_const card_ord mulr_natl.
rewrite (eq_bigr (fun k => 1 + (r - 1) * (k \in D)%:R)) => [|k _].
  by rewrite big_split -mulr_sumr count_of sumr_const card_ord.
by rewrite /noise /high; case: (_ \in _); rewrite /= ?mulr1 ?mulr0 ?addr0 // addrC subrK.
Qed.

Lemma count_below m n : (m <= n)%N -> \sum_(v < n) (v < m)%:R = m%:R :> F.
Proof.
move=> le; rewrite (eq_bigr (fun v : 'I_n => if (v < m)%N then 1 else 0)) => [|v _].
  by rewrite -big_mkcond (big_ord_narrow le) sumr_const card_ord.
by case: (v < m)%N.
Qed.

Lemma natr_block (n : nat) : (0 < n < b)%N -> (n%:R : 'I_b) != 0.
Proof. by case/andP=> n0 nb; rewrite -val_eqE /= Zp_nat /= modn_small // -lt0n. Qed.

(* Of the places of a block, as many share d blocks as a leaves in the block of 0; others share l. *)
Lemma common_at a : (a <= tau * b'.+1)%N ->
  \sum_(v < tau) (common (carried a v)%:R)%:R
  = tau%:R * l%:R + (tau - minn a tau)%:R * (d - l%:R) :> F.
Proof.
move=> le; have common0 : common 0 = #|D|.
  by apply: eq_card => k; rewrite inE addr0 andbb.
have [small|large] := ltnP a tau.
  rewrite (eq_bigr (fun v : 'I_tau => l%:R + (v < tau - a)%:R * (d - l%:R))).
    by rewrite big_split -mulr_suml count_below ?leq_subr // sumr_const card_ord -[_ *+ _]mulr_natl.
  move=> v _; rewrite /carried divn_small // modn_small // add0n ltn_subRL addnC leqNgt addnC.
  case: (v + a < tau)%N; rewrite /= ?mul1r ?mul0r ?addr0; first by rewrite common0 addrC subrK.
  by rewrite difference_set // oner_neq0.
rewrite subnn mul0r addr0 (eq_bigr (fun=> l%:R)) => [|v _].
  by rewrite sumr_const card_ord -[LHS]mulr_natl.
rewrite difference_set // natr_block // /carried; apply/andP; split.
  by rewrite addn_gt0 divn_gt0 ?large.
have [j0|j0] := posnP (a %% tau).
  have -> : (tau <= v + a %% tau)%N = false by rewrite j0 addn0 leqNgt ltn_ord.
  by rewrite addn0 ltn_divLR // (leq_ltn_trans le) // mulnC ltn_pmul2r.
have : (a %/ tau < b'.+1)%N.
  rewrite ltn_divLR // mulnC ltn_neqAle le andbT; apply: contraL j0 => /eqP ->.
  by rewrite modnMr.
by case: (tau <= _)%N => lt; rewrite ?addn1 ?addn0 ltnS // ltnW.
Qed.

(* A BLOCK LAW IS AFFINE. For 0 <= a <= tau (b - 1) the cell of a user in state a counts with the
   probability [absent + contrast * min(a, tau)/tau], exactly. *)
Theorem block_law a : (a <= tau * b'.+1)%N ->
  counted a = absent + contrast * ((minn a tau)%:R / tau%:R).
Proof.
move=> le; have w0 : weight_of_all != 0 by rewrite gt_eqF.
have t0 : tau%:R != 0 :> F by rewrite pnatr_eq0.
have m_le : (minn a tau <= tau)%N := geq_minr a tau.
rewrite /counted all_noise sum_values.
have one (c : 'I_b) : \sum_(k < b) noise (k, ord0 : 'I_tau) * (~~ high (k + c))%:R
    = weight_of_all - d - (r - 1) * (common c)%:R.
  rewrite (eq_bigr (fun k => 1 + (r - 1) * (k \in D)%:R - (k + c \in D)%:R
                     - (r - 1) * (k \in [set k in D | k + c \in D])%:R)) => [|k _]; last first.
    rewrite /noise /high /= inE; case: (k \in D); case: (k + c \in D);
      rewrite /= ?(mulr1n, mulr0n); fring F.
  rewrite !sumrB big_split -!mulr_sumr !count_of sumr_const card_ord /=.
  have -> : \sum_(k < b) (k + c \in D)%:R = d.
    by rewrite -count_of [RHS](reindex_inj (addIr c)).
  by [].
rewrite (eq_bigr (fun v => weight_of_all - d - (r - 1) * (common (carried a v)%:R)%:R)) => [|v _]; last first.
  exact: (one (carried a v)%:R).
rewrite sumrB sumr_const card_ord -mulr_sumr common_at // natrB // -mulr_natl.
move: m_le; set m := minn a tau => _; rewrite /absent /contrast.
have -> : tau%:R * (weight_of_all - d) - (r - 1) * (tau%:R * l%:R + (tau%:R - m%:R) * (d - l%:R))
    = tau%:R * (b%:R - d) + (r - 1) * (d - l%:R) * m%:R.
  by move: (tau%:R : F) (b%:R : F) (l%:R : F) (d) (m%:R : F) => t1 b1 l1 d1 m1; fring F.
rewrite mulrDl -mulf_div divff // mul1r; congr (_ + _).
by rewrite [RHS]mulf_div [weight_of_all * _]mulrC.
Qed.

(* One user in each cell: the number of cells that count, less [absent] for each and scaled, has the mean
   of the cropped sum. Nothing is approximated. *)
Theorem cropped_sum_is_unbiased (users : seq nat) :
  contrast != 0 -> all (fun a => a <= tau * b'.+1)%N users ->
  (\sum_(a <- users) counted a - (size users)%:R * absent) / (contrast / tau%:R)
  = (\sum_(a <- users) minn a tau)%:R.
Proof.
move=> c0 within; have t0 : tau%:R != 0 :> F by rewrite pnatr_eq0.
have -> : \sum_(a <- users) counted a
    = (size users)%:R * absent + (\sum_(a <- users) minn a tau)%:R * (contrast / tau%:R).
  elim: users within => [|a users IH] /= within; first by rewrite !big_nil !mul0r addr0.
  case/andP: within => la /IH; rewrite !big_cons => ->; rewrite block_law // -[(size users).+1]addn1 !natrD.
  move: (minn a tau)%:R (\sum_(j <- users) minn j tau)%:R ((size users)%:R : F) (tau%:R^-1 : F) => u v w i.
  by move: absent contrast => x y; rewrite ?mulr1n; fring F.
by rewrite addrC addKr mulfK // mulf_neq0 // invr_eq0.
Qed.

End Blocks.
