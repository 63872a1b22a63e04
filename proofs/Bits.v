(* Presence bits: a bit is drawn again whenever its user comes or leaves.

   The law of each draw gives 0 and 1 a probability of at most p, so p/(1-p) is the most by which
   two draws differ. One look costs p/(1-p). With releases that cost a_1, ..., a_n (as factors),
   before and after the look, all together costs p/(1-p) times 1 - p + p a_1 ... a_n. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Panprivacy Require Import Model Table.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Bit.

Variables (F : realFieldType) (U : eqType).
Variable p : F.

(* A law of a bit: q for 1, 1 - q for 0. *)
Definition coin (q : F) (x : bool) : F := if x then q else 1 - q.

(* A draw that p covers: both values have probabilities of at most p. *)
Definition covers (q : F) : Prop := 1 - p <= q /\ q <= p.

Lemma coin_le q x : covers q -> coin q x <= p.
Proof. by case=> lo hi; case: x => //=; rewrite ler_subl_addr addrC -ler_subl_addr. Qed.

Lemma coin_ge q x : covers q -> 1 - p <= coin q x.
Proof. by case=> lo hi; case: x => //=; rewrite ler_add2l ler_opp2. Qed.

Lemma coin_sum q : \sum_x coin q x = 1.
Proof. by rewrite big_bool /= addrCA subrr addr0. Qed.

(* What a batch does to the bit: nothing, or it is drawn anew. A user who comes draws from p, and one
   who leaves from 1 - p. The last row of a batch decides. *)
Variable redraw : batch U -> option F.
Hypothesis redraw_covers : forall rows q, redraw rows = Some q -> covers q.

Definition bit_move (rows : batch U) (x y : bool) : F :=
  if redraw rows is Some q then coin q y else (x == y)%:R.

(* Nothing is announced here: the plan has no announced intrusion, so that has no law. *)
Definition refused (x y : bool) : F := 0.

Variable q0 : F.                                  (* the law of the first bit: 1 - p, for ours *)
Hypothesis q0_covers : covers q0.
Hypothesis p1 : p < 1.
Hypothesis p_half : 1 - p <= p.

Notation event := (event F U bool_finType).
Notation reach := (reach (coin q0) bit_move refused).
Notation total := (total (coin q0) bit_move refused).
Notation quiet h := (~~ has (@is_fresh F U bool_finType) h).
Notation positive := (fun K : bool -> F => forall x, 0 < K x).

Lemma p_gt0 : 0 < p.
Proof. by apply: lt_le_trans p_half; rewrite subr_gt0. Qed.
Let p0 : 0 <= p := ltW p_gt0.

Lemma coin_ge0 q x : covers q -> 0 <= coin q x.
Proof. by move/(coin_ge x); apply: le_trans; rewrite subr_ge0 ltW. Qed.

Lemma bit_move_ge0 rows x y : 0 <= bit_move rows x y.
Proof.
rewrite /bit_move; case e: (redraw rows) => [q|]; last by rewrite ler0n.
exact: coin_ge0 (redraw_covers e).
Qed.

Lemma reach_pos side h x : weights_ok positive h -> 0 <= reach side h x.
Proof.
move=> ok; apply: reach_ge0 => //.
- by move=> y; apply: coin_ge0.
- exact: bit_move_ge0.
- by apply: weights_ok_sub ok => K pos y; apply: ltW.
Qed.

(* A bit that is drawn anew forgets what it was. *)
Lemma sum_move rows (f : bool -> F) x :
  \sum_y f y * bit_move rows y x
  = if redraw rows is Some q then coin q x * (f true + f false) else f x.
Proof.
rewrite big_bool /bit_move; case: (redraw rows) => [q|] /=; first by rewrite -mulrDl mulrC.
by case: x; rewrite /= ?mulr1 ?mulr0 ?addr0 ?add0r.
Qed.

(* The ratio that a release has between the two values of the bit, and the value that makes its
   answer more likely. *)
Definition best (K : bool -> F) : bool := K false <= K true.
Definition worth (K : bool -> F) : F := K (best K) / K (~~ best K).

Lemma worth_ge1 K : positive K -> 1 <= worth K.
Proof.
move=> pos; rewrite /worth ler_pdivl_mulr // mul1r /best.
by case: (lerP (K false) (K true)) => //= /ltW.
Qed.

Definition wrong (K : bool -> F) x y : F := ((x == best K) && (y == ~~ best K))%:R.

Lemma quotient K x y : positive K -> K x / K y <= 1 + (worth K - 1) * wrong K x y.
Proof.
move=> pos; have w1 := worth_ge1 pos; rewrite /wrong.
case: (x =P best K) => [->|/eqP xb]; case: (y =P ~~ best K) => [->|/eqP yb] /=;
  rewrite ?mulr1 ?mulr0 ?addr0 ?[1 + _]addrC ?subrK //.
- by have -> : y = best K; [case: (y) (best K) yb => [] [] | rewrite divff ?gt_eqF].
- have -> : x = ~~ best K by case: (x) (best K) xb => [] [].
  by rewrite divff ?gt_eqF.
have -> : x = ~~ best K by case: (x) (best K) xb => [] [].
have -> : y = best K by case: (y) (best K) yb => [] [].
rewrite ler_pdivr_mulr // mul1r /best.
by case: (lerP (K false) (K true)) => //= /ltW.
Qed.

(* Three versions of a history: as it is; with nothing released; with every weight inverted. *)
Fixpoint plain (h : seq event) : seq event :=
  match h with
  | [::] => [::]
  | Weigh K :: past => @Weigh F U bool_finType (fun _ => 1) :: plain past
  | e :: past => e :: plain past
  end.

Fixpoint inverse (h : seq event) : seq event :=
  match h with
  | [::] => [::]
  | Weigh K :: past => @Weigh F U bool_finType (fun x => (K x)^-1) :: inverse past
  | e :: past => e :: inverse past
  end.

(* The product of the ratios of all releases: e^beta. *)
Fixpoint all_worth (h : seq event) : F :=
  match h with
  | [::] => 1
  | Weigh K :: past => all_worth past * worth K
  | _ :: past => all_worth past
  end.

Lemma all_worth_ge1 h : weights_ok positive h -> 1 <= all_worth h.
Proof.
elim: h => [|e h IH] //=; case: e => [b b'||K|c] //= [pos /IH a1].
rewrite -[1]mulr1; apply: ler_pmul => //; exact: worth_ge1.
Qed.

Lemma plain_ok h : weights_ok positive (plain h).
Proof. by elim: h => [|e h IH] //=; case: e => [b b'||K|c] //=; split=> // x; apply: ltr01. Qed.

Lemma inverse_ok h : weights_ok positive h -> weights_ok positive (inverse h).
Proof.
elim: h => [|e h IH] //=; case: e => [b b'||K|c] //= [pos /IH ok]; split=> // x.
by rewrite invr_gt0.
Qed.

Lemma plain_ge0 side h x : 0 <= reach side (plain h) x.
Proof. by apply/reach_pos/plain_ok. Qed.

Notation left_ h x := (reach true (plain h) x).
Notation right_ h y := (reach false (plain h) y).
Notation whole f := (f true + f false).

(* How often releases met a bit of their best value in the first stream and of the other value in
   the second one, each with the price that it adds: A (a - 1) for a release of ratio a after others
   of ratio A in all. *)
Fixpoint met (h : seq event) (x y : bool) : F :=
  match h with
  | [::] => 0
  | Batch b b' :: past =>
      \sum_v (\sum_u met past u v * bit_move b u x) * bit_move b' v y
  | Fresh :: past => 0
  | Weigh K :: past =>
      met past x y + all_worth past * (worth K - 1) * wrong K x y * (left_ past x * right_ past y)
  | Show c :: past => met past x y * ((x == c)%:R * (y == c)%:R)
  end.

Lemma met_ge0 h x y : weights_ok positive h -> 0 <= met h x y.
Proof.
elim: h x y => [|e h IH] x y //=; case: e => [b b'||K|c] //= ok.
- apply: sumr_ge0 => v _; rewrite mulr_ge0 ?bit_move_ge0 //.
  by apply: sumr_ge0 => u _; rewrite mulr_ge0 ?bit_move_ge0 ?IH.
- case: ok => pos ok; rewrite addr_ge0 ?IH // !mulr_ge0 ?ler0n ?plain_ge0 //.
  + exact: le_trans ler01 (all_worth_ge1 ok).
  + by rewrite subr_ge0 worth_ge1.
- by apply: mulr_ge0; [exact: IH | rewrite -natrM ler0n].
Qed.

(* Step 1. The ratio of the weights of two independent histories is at most that of a sum over
   releases: prod a_i^(I_i) <= 1 + sum_i A_(i-1) (a_i - 1) I_i. *)
Lemma product_le h x y : weights_ok positive h ->
  reach true h x * reach false (inverse h) y <= left_ h x * right_ h y + met h x y
  /\ reach true h x * reach false (inverse h) y <= all_worth h * (left_ h x * right_ h y).
Proof.
elim: h x y => [|e h IH] x y ok; first by rewrite /= addr0 mul1r.
have lr0 u v : 0 <= left_ h u * right_ h v by rewrite mulr_ge0 ?plain_ge0.
case: e ok => [b b'||K|c] ok.
- have expand (f g : bool -> F) : (\sum_u f u * bit_move b u x) * (\sum_v g v * bit_move b' v y)
      = \sum_v (\sum_u (f u * g v) * bit_move b u x) * bit_move b' v y.
    rewrite mulr_sumr; apply: eq_bigr => v _; rewrite mulrA; congr (_ * _).
    by rewrite mulr_suml; apply: eq_bigr => u _; rewrite mulrAC.
  rewrite /= !expand; split.
    rewrite -big_split /=; apply: ler_sum => v _; rewrite -mulrDl; apply: ler_wpmul2r; first exact: bit_move_ge0.
    rewrite -big_split /=; apply: ler_sum => u _; rewrite -mulrDl; apply: ler_wpmul2r; first exact: bit_move_ge0.
    by case: (IH u v ok).
  rewrite mulr_sumr; apply: ler_sum => v _; rewrite mulrA; apply: ler_wpmul2r; first exact: bit_move_ge0.
  rewrite mulr_sumr; apply: ler_sum => u _; rewrite mulrA; apply: ler_wpmul2r; first exact: bit_move_ge0.
  by case: (IH u v ok).
- by rewrite /= /refused !big1 ?mul0r ?mulr0 ?addr0 // => *; rewrite mulr0.
- case: ok => pos ok; have [one two] := IH x y ok; have a1 := all_worth_ge1 ok.
  have a0 : 0 <= all_worth h by apply: le_trans ler01 a1.
  have w1 := worth_ge1 pos.
  have q := quotient x y pos.
  have k0 : 0 <= K x / K y by rewrite divr_ge0 ?ltW.
  have n0 : 0 <= reach true h x * reach false (inverse h) y.
    by rewrite mulr_ge0 ?reach_pos //; apply: inverse_ok.
  rewrite /= !mulr1 mulrACA; split.
    apply: (le_trans (ler_wpmul2l n0 q)); rewrite mulrDr mulr1 addrA ler_add //.
    rewrite -(mulrA (all_worth h)) [X in _ <= X]mulrAC.
    by apply: ler_wpmul2r; rewrite // mulr_ge0 ?subr_ge0 ?ler0n.
  have qw : K x / K y <= worth K.
    apply: (le_trans q); rewrite -[X in _ <= X](subrK 1) addrC ler_add2r -[X in _ <= X]mulr1.
    by apply: ler_wpmul2l; rewrite ?subr_ge0 // /wrong lern1 leq_b1.
  by apply: (le_trans (ler_pmul n0 k0 two qw)); rewrite mulrAC.
- have [one two] := IH x y ok; rewrite /= !(mulrACA _ (_ == c)%:R); split.
    by rewrite -mulrDl; apply: ler_wpmul2r; rewrite // -natrM ler0n.
  by rewrite [X in _ <= X]mulrA; apply: ler_wpmul2r; rewrite // -natrM ler0n.
Qed.

(* Step 2. Sums of reciprocals: 1/E(Y) <= E(1/Y), by Cauchy and Schwarz. *)
Lemma cauchy (a b c d u v : F) :
  0 <= a -> 0 <= b -> 0 <= c -> 0 <= d -> 0 <= u -> 0 <= v ->
  u ^+ 2 <= a * c -> v ^+ 2 <= b * d -> (u + v) ^+ 2 <= (a + b) * (c + d).
Proof.
move=> a0 b0 c0 d0 u0 v0 uac vbd.
have cross : (u * v) *+ 2 <= a * d + b * c.
  rewrite -(@ler_pexpn2r _ 2) // ?nnegrE ?mulrn_wge0 ?addr_ge0 ?mulr_ge0 //.
  have amgm : (a * d * (b * c)) *+ 4 <= (a * d + b * c) ^+ 2.
    have -> : (a * d + b * c) ^+ 2 = (a * d - b * c) ^+ 2 + (a * d * (b * c)) *+ 4.
      rewrite sqrrD sqrrB; set x := _ ^+ 2; set y := _ ^+ 2; set z := _ * _ * _.
      rewrite [RHS]addrAC; congr (_ + _); rewrite -addrA; congr (_ + _).
      by rewrite addrC -mulrnBr.
    by rewrite ler_addr sqr_ge0.
  apply: le_trans amgm.
  have -> : ((u * v) *+ 2) ^+ 2 = (u ^+ 2 * v ^+ 2) *+ 4 by rewrite -mulr_natr !exprMn -natrX mulr_natr.
  have -> : a * d * (b * c) = (a * c) * (b * d) by rewrite mulrACA [d * c]mulrC mulrACA.
  by rewrite ler_muln2r; apply: ler_pmul; rewrite ?sqr_ge0.
have -> : (a + b) * (c + d) = a * c + (a * d + b * c) + b * d.
  by rewrite mulrDl !mulrDr !addrA.
by rewrite sqrrD; apply: ler_add => //; apply: ler_add.
Qed.

Lemma reciprocal h y : weights_ok positive h ->
  right_ h y ^+ 2 <= reach false h y * reach false (inverse h) y.
Proof.
elim: h y => [|e h IH] y ok; first by rewrite expr2.
case: e ok => [b b'||K|c] ok.
- rewrite [right_ _ _]sum_move [reach _ (_ :: h) _]sum_move [X in _ <= _ * X]sum_move.
  case: (redraw b') => [q|]; last exact: IH.
  rewrite exprMn [X in _ <= X]mulrACA -[coin q y * _]expr2; apply: ler_wpmul2l; first exact: sqr_ge0.
  by apply: cauchy; rewrite ?plain_ge0 ?reach_pos ?IH //; apply: inverse_ok.
- by rewrite /= /refused !big1 ?mul0r ?expr0n // => *; rewrite mulr0.
- case: ok => pos ok; rewrite /= mulr1 mulrACA divff ?mulr1 ?IH //.
  by rewrite gt_eqF.
- rewrite /=; case: (y == c); rewrite ?mulr1 ?mulr0 ?expr0n //; exact: IH.
Qed.

(* Step 3. A release met the bit that was seen, or one that was drawn apart from it. *)
Lemma coins1 q : coin q true + coin q false = 1.
Proof. by rewrite /= addrCA subrr addr0. Qed.

Lemma met_batch b b' h x y :
  met (Batch F bool_finType b b' :: h) x y
  = match redraw b, redraw b' with
    | Some q, Some q' => coin q x * coin q' y * (whole (met h true) + whole (met h false))
    | Some q, None => coin q x * (met h true y + met h false y)
    | None, Some q' => coin q' y * whole (met h x)
    | None, None => met h x y
    end.
Proof.
rewrite /= sum_move; case: (redraw b') => [q'|]; rewrite !sum_move; case: (redraw b) => [q|] //.
by rewrite -mulrDr mulrCA mulrA addrACA.
Qed.

Let price h := p * (all_worth h - 1).

(* Before the look: the bit may be anything, in both streams. *)
Definition before_look h : Prop :=
  [/\ whole (reach true (plain h)) = 1, whole (reach false (plain h)) = 1,
      forall x, left_ h x <= p /\ (1 - p <= right_ h x /\ right_ h x <= p) &
      [/\ forall x, met h x x <= price h * (left_ h x * right_ h x),
          forall y, met h true y + met h false y <= price h * right_ h y &
          forall x, whole (met h x) <= price h * left_ h x]].

(* After it: in both streams it is what was seen, or in one it was drawn again. *)
Definition after_look h : Prop :=
  let wl := whole (reach true (plain h)) in let wr := whole (reach false (plain h)) in
  [/\ (1 - p) * wl <= p * wr,
      (exists c, left_ h (~~ c) = 0 /\ right_ h (~~ c) = 0)
      \/ (forall x, left_ h x <= p * wl) \/ (forall y, right_ h y <= p * wr) &
      whole (met h true) + whole (met h false) <= price h * (wl * wr)].

Lemma price_ge0 h : weights_ok positive h -> 0 <= price h.
Proof. by move=> ok; rewrite mulr_ge0 // subr_ge0 all_worth_ge1. Qed.

Lemma before_batch b b' h : weights_ok positive h ->
  before_look h -> before_look (Batch F bool_finType b b' :: h).
Proof.
move=> ok [wl wr bounds [diag rows cols]].
have c0 := price_ge0 ok.
have all_met : whole (met h true) + whole (met h false) <= price h.
  rewrite addrACA -[price h]mulr1 -wr mulrDr; exact: ler_add.
have lE x : left_ (Batch F bool_finType b b' :: h) x
    = if redraw b is Some q then coin q x else left_ h x.
  by rewrite /= sum_move wl; case: (redraw b) => [q|] //; rewrite mulr1.
have rE x : right_ (Batch F bool_finType b b' :: h) x
    = if redraw b' is Some q then coin q x else right_ h x.
  by rewrite /= sum_move wr; case: (redraw b') => [q|] //; rewrite mulr1.
rewrite /before_look -[price (_ :: h)]/(price h).
split; rewrite ?lE ?rE.
- by case: (redraw b) => [q|] //; apply: coins1.
- by case: (redraw b') => [q|] //; apply: coins1.
- move=> x; rewrite lE rE; have [lx [rx rx']] := bounds x; split.
    by case e: (redraw b) => [q|] //; apply: coin_le (redraw_covers e).
  case e: (redraw b') => [q|] //; split; first exact: coin_ge (redraw_covers e).
  exact: coin_le (redraw_covers e).
split=> x; rewrite ?lE ?rE !met_batch; case e: (redraw b) => [q|]; case e': (redraw b') => [q'|] //.
- rewrite mulrC; apply: ler_wpmul2r => //.
  by apply: mulr_ge0; apply: coin_ge0; [exact: redraw_covers e | exact: redraw_covers e'].
- rewrite mulrCA; apply: ler_wpmul2l; last exact: rows.
  exact: coin_ge0 (redraw_covers e).
- rewrite mulrA mulrC; apply: ler_wpmul2r; last exact: cols.
  exact: coin_ge0 (redraw_covers e').
- rewrite -mulrDl -mulrDl coins1 mul1r mulrC; apply: ler_wpmul2r => //.
  exact: coin_ge0 (redraw_covers e').
- by rewrite -mulrDl coins1 mul1r.
- rewrite -mulrDr mulrC; apply: ler_wpmul2r => //.
  exact: coin_ge0 (redraw_covers e').
- rewrite -mulrDl -mulrDr coins1 mulr1 mulrC; apply: ler_wpmul2r => //.
  exact: coin_ge0 (redraw_covers e).
- rewrite -mulrDr addrACA mulrC; apply: ler_wpmul2r => //.
  exact: coin_ge0 (redraw_covers e).
- by rewrite -mulrDl coins1 mul1r.
Qed.

Lemma wrong_row K y (f : bool -> F) c :
  (forall x, f x <= c) -> 0 <= c -> wrong K true y * f true + wrong K false y * f false <= c.
Proof.
by move=> fc c0; rewrite /wrong; case: (best K); case: y; rewrite /= ?mul0r ?mul1r ?addr0 ?add0r.
Qed.

Lemma wrong_col K x (f : bool -> F) c :
  (forall y, f y <= c) -> 0 <= c -> wrong K x true * f true + wrong K x false * f false <= c.
Proof.
by move=> fc c0; rewrite /wrong; case: (best K); case: x; rewrite /= ?mul0r ?mul1r ?addr0 ?add0r.
Qed.

Lemma price_weigh K h : price (Weigh U K :: h) = price h + p * (all_worth h * (worth K - 1)).
Proof. by rewrite /price /= -mulrDr; congr (_ * _); rewrite mulrBr mulr1 [RHS]addrC addrA subrK. Qed.

Lemma before_weigh K h : positive K -> weights_ok positive h ->
  before_look h -> before_look (Weigh U K :: h).
Proof.
move=> pos ok [wl wr bounds [diag rows cols]].
have k0 : 0 <= all_worth h * (worth K - 1).
  rewrite mulr_ge0 ?subr_ge0 ?worth_ge1 //; exact: le_trans ler01 (all_worth_ge1 ok).
rewrite /before_look price_weigh /= !mulr1; split=> //.
  by move=> x; rewrite !mulr1; apply: bounds.
move: (all_worth h * (worth K - 1)) k0 => k k0.
split=> x; rewrite ?mulr1.
- have -> : wrong K x x = 0 by rewrite /wrong; case: (best K); case: x.
  rewrite mulr0 mul0r addr0; apply: (le_trans (diag x)); apply: ler_wpmul2r.
    by rewrite mulr_ge0 ?plain_ge0.
  by rewrite ler_addl mulr_ge0.
- rewrite addrACA mulrDl; apply: ler_add => //.
  rewrite !mulrA -mulrDl; apply: ler_wpmul2r; first exact: plain_ge0.
  rewrite -!mulrA -mulrDr [p * k]mulrC; apply: ler_wpmul2l => //.
  by apply: wrong_row => // z; case: (bounds z).
- rewrite addrACA mulrDl; apply: ler_add => //.
  rewrite ![left_ h x * _]mulrC !mulrA -mulrDl; apply: ler_wpmul2r; first exact: plain_ge0.
  rewrite -!mulrA -mulrDr [p * k]mulrC; apply: ler_wpmul2l => //.
  by apply: wrong_col => // z; case: (bounds z) => _ [].
Qed.

Lemma look_now c h : weights_ok positive h ->
  before_look h -> after_look (Show F U (c : bool_finType) :: h).
Proof.
move=> ok [wl wr bounds [diag rows cols]]; rewrite /after_look -[price (_ :: h)]/(price h) /=.
have [lc [rc _]] := bounds c.
have split2 (f : bool -> F) : f true * (true == c)%:R + f false * (false == c)%:R = f c.
  by case: (c); rewrite /= mulr1 mulr0 ?addr0 ?add0r.
rewrite !split2; split.
- apply: le_trans (ler_wpmul2l p0 rc); rewrite mulrC; apply: ler_wpmul2r => //.
  by rewrite subr_ge0 ltW.
- by left; exists c; rewrite (_ : (~~ c == c) = false) ?mulr0 //; case: (c).
- apply: le_trans (diag c).
  by case: (c); rewrite /= !(mulr0, mul0r, mulr1, addr0, add0r).
Qed.

Lemma after_batch b b' h : weights_ok positive h ->
  after_look h -> after_look (Batch F bool_finType b b' :: h).
Proof.
move=> ok []; rewrite /after_look -[price (_ :: h)]/(price h) !met_batch /= !sum_move.
set wl := whole _; set wr := whole (reach false _) => ratio cases bound.
have lE : (if redraw b is Some q then coin q true * wl else left_ h true) +
          (if redraw b is Some q then coin q false * wl else left_ h false) = wl.
  by case: (redraw b) => [q|] //; rewrite -mulrDl coins1 mul1r.
have rE : (if redraw b' is Some q then coin q true * wr else right_ h true) +
          (if redraw b' is Some q then coin q false * wr else right_ h false) = wr.
  by case: (redraw b') => [q|] //; rewrite -mulrDl coins1 mul1r.
have wl0 : 0 <= wl by rewrite addr_ge0 ?plain_ge0.
have wr0 : 0 <= wr by rewrite addr_ge0 ?plain_ge0.
rewrite lE rE; split=> //.
- case e: (redraw b) => [q|].
    right; left=> x; rewrite sum_move e -/wl; apply: ler_wpmul2r => //.
    exact: coin_le (redraw_covers e).
  case e': (redraw b') => [q|].
    right; right=> y; rewrite sum_move e' -/wr; apply: ler_wpmul2r => //.
    exact: coin_le (redraw_covers e').
  case: cases => [[c [l r]]|[l|r]].
  + by left; exists c; rewrite !sum_move e e'.
  + by right; left=> x; rewrite sum_move e.
  + by right; right=> y; rewrite sum_move e'.
- apply: le_trans bound; rewrite le_eqVlt; apply/orP; left; apply/eqP.
  have one q : q + (1 - q) = 1 :> F by apply: coins1.
  case: (redraw b) => [q|]; case: (redraw b') => [q'|] //; rewrite /coin.
  + by rewrite -!mulrDl -!mulrDr !one !mulr1 one mul1r.
  + by rewrite -!mulrDr -mulrDl one mul1r addrACA.
  + by rewrite -!mulrDl !one !mul1r.
Qed.

Lemma after_weigh K h : positive K -> weights_ok positive h ->
  after_look h -> after_look (Weigh U K :: h).
Proof.
move=> pos ok []; rewrite /after_look price_weigh /= !mulr1.
set wl := whole _; set wr := whole (reach false _) => ratio cases bound.
have k0 : 0 <= all_worth h * (worth K - 1).
  rewrite mulr_ge0 ?subr_ge0 ?worth_ge1 //; exact: le_trans ler01 (all_worth_ge1 ok).
move: (all_worth h * (worth K - 1)) k0 => k k0.
have wl0 : 0 <= wl by rewrite addr_ge0 ?plain_ge0.
have wr0 : 0 <= wr by rewrite addr_ge0 ?plain_ge0.
have lle x : left_ h x <= wl by case: x; rewrite /wl ?ler_addl ?ler_addr plain_ge0.
have rle y : right_ h y <= wr by case: y; rewrite /wr ?ler_addl ?ler_addr plain_ge0.
split=> //.
- case: cases => [[c [l r]]|[l|r]].
  + by left; exists c; rewrite l r !mul0r.
  + by right; left=> x; rewrite mulr1.
  + by right; right=> y; rewrite mulr1.
have met1 : left_ h (best K) * right_ h (~~ best K) <= p * (wl * wr).
  case: cases => [[c [l r]]|[l|r]].
  + suff -> : left_ h (best K) * right_ h (~~ best K) = 0 by rewrite !mulr_ge0.
    case e: (best K == ~~ c); first by rewrite (eqP e) l mul0r.
    suff -> : ~~ best K = ~~ c by rewrite r mulr0.
    by case: (best K) (c) e => [] [].
  + by rewrite mulrA; apply: ler_pmul; rewrite ?plain_ge0.
  + by rewrite mulrCA; apply: ler_pmul; rewrite ?plain_ge0.
have -> : forall A B C D a b c d : F, A + a + (B + b) + (C + c + (D + d))
    = (A + B + (C + D)) + (a + b + (c + d)).
  by move=> A B C D a b c d; rewrite [A + a + _]addrACA [C + c + _]addrACA addrACA.
rewrite mulrDl; apply: ler_add => //; rewrite /wrong.
have -> : p * k * (wl * wr) = k * (p * (wl * wr)) by rewrite [p * k]mulrC -mulrA.
apply: le_trans (ler_wpmul2l k0 met1).
by case: (best K); rewrite /= !(mulr0, mul0r, mulr1, addr0, add0r).
Qed.

Lemma looks_of h : quiet h -> fair h -> weights_ok positive h ->
  if shown h then after_look h else before_look h.
Proof.
elim: h => [|e h IH] /=.
  move=> _ _ _; split; rewrite ?coins1 //.
    by move=> x; split; [apply: coin_le | split; [apply: coin_ge | apply: coin_le]].
  by split=> x; rewrite /= ?addr0 /price /= subrr mulr0 mul0r.
case: e => [b b'||K|c] //=.
- by move=> qh /andP [fh _] ok; case: (shown h) (IH qh fh ok); [apply: after_batch | apply: before_batch].
- move=> qh /andP [fh _] [pos ok].
  by case: (shown h) (IH qh fh ok); [apply: after_weigh | apply: before_weigh].
- move=> qh /andP [fh sh] ok; move: (IH qh fh ok); rewrite (negPf sh); exact: look_now.
Qed.

(* Step 4. The three steps together. *)

Lemma looks_of_ratio h : quiet h -> fair h -> weights_ok positive h ->
  let wl := whole (reach true (plain h)) in let wr := whole (reach false (plain h)) in
  (1 - p) * wl <= p * wr /\ whole (met h true) + whole (met h false) <= price h * (wl * wr).
Proof.
move=> qh fh ok; have := looks_of qh fh ok; case: (shown h); first by case.
case=> wl wr _ [_ rows _]; rewrite /= wl wr !mulr1; split=> //.
by rewrite addrACA -[price h]mulr1 -wr mulrDr ler_add.
Qed.

Lemma dominated h : weights_ok positive h ->
  exists2 B, 0 <= B & forall x, reach true h x <= B * left_ h x.
Proof.
elim: h => [|e h IH] /=; first by exists 1; [exact: ler01 | move=> x; rewrite mul1r].
case: e => [b b'||K|c] ok.
- have [B B0 le] := IH ok; exists B => // x; rewrite /= mulr_sumr; apply: ler_sum => y _.
  by rewrite mulrA; apply: ler_wpmul2r; rewrite ?bit_move_ge0.
- by exists 0 => // x; rewrite /= /refused big1 ?mul0r // => y _; rewrite mulr0.
- case: ok => pos ok; have [B B0 le] := IH ok; exists (B * (K true + K false)).
    by rewrite mulr_ge0 // addr_ge0 // ltW.
  move=> x; rewrite /= mulr1 [X in _ <= X]mulrAC; apply: ler_pmul => //.
  + exact: reach_pos.
  + exact: ltW.
  + by case: x; rewrite ?ler_addl ?ler_addr ltW.
- have [B B0 le] := IH ok; exists B => // x; rewrite /= mulrA; apply: ler_wpmul2r; rewrite ?ler0n //.
Qed.

Lemma bits_history h : quiet h -> fair h -> weights_ok positive h ->
  (1 - p) * total true h <= p * (1 - p + p * all_worth h) * total false h.
Proof.
move=> qh fh ok; rewrite /Table.total !big_bool.
have [] := looks_of_ratio qh fh ok; rewrite /=.
set wl := whole _; set wr := whole (reach false _) => ratio metb.
set n := reach true h true + _; set m := reach false h true + _.
pose m' := whole (reach false (inverse h)).
have p'0 : 0 < 1 - p by rewrite subr_gt0.
have G1 : 1 - p + p * all_worth h = 1 + price h.
  by rewrite /price mulrBr mulr1 addrAC addrA.
have G0 : 0 <= 1 + price h by rewrite addr_ge0 ?ler01 // price_ge0.
have wl0 : 0 <= wl by rewrite addr_ge0 ?plain_ge0.
have wr0 : 0 <= wr by rewrite addr_ge0 ?plain_ge0.
have m0 : 0 <= m by rewrite addr_ge0 ?reach_pos.
have m'0 : 0 <= m' by rewrite addr_ge0 ?reach_pos //; apply: inverse_ok.
have square : wr ^+ 2 <= m * m'.
  by apply: cauchy; rewrite ?plain_ge0 ?reach_pos ?reciprocal //; apply: inverse_ok.
have product : n * m' <= wl * wr * (1 + price h).
  rewrite mulrDr mulr1 [_ * price h]mulrC; apply: le_trans (ler_add (lexx _) metb).
  rewrite !mulrDl !mulrDr.
  have -> : forall a b c d A B C D : F, a + b + (c + d) + (A + B + (C + D))
     = (a + A) + (b + B) + ((c + C) + (d + D)).
    by move=> a b c d A B C D; rewrite [LHS]addrACA [a + b + _]addrACA [c + d + _]addrACA.
  by apply: ler_add; apply: ler_add; apply: (proj1 (product_le _ _ ok)).
rewrite G1; move: m'0; rewrite le_eqVlt => /orP [/eqP m'0|m'0].
  move: square; rewrite -m'0 mulr0 => sq.
  have wrz : wr = 0 by apply/eqP; rewrite -sqrf_eq0 eq_le sq sqr_ge0.
  have wlz : wl = 0.
    move: ratio; rewrite wrz mulr0 pmulr_rle0 // => le; apply/eqP; by rewrite eq_le le wl0.
  have [B B0 dom] := dominated ok.
  have nz : n <= 0.
    apply: (le_trans (ler_add (dom true) (dom false))); by rewrite -mulrDr -/wl wlz mulr0.
  apply: (@le_trans _ _ 0); first by rewrite pmulr_rle0.
  by rewrite !mulr_ge0.
rewrite -(ler_pmul2r m'0) -!mulrA.
apply: (le_trans (ler_wpmul2l (ltW p'0) product)).
rewrite !mulrA; apply: (@le_trans _ _ (p * wr * wr * (1 + price h))).
  by apply: ler_wpmul2r => //; apply: ler_wpmul2r.
rewrite -[p * wr * wr]mulrA -expr2 -[p * (1 + _) * _ * _]mulrA [p * (1 + _) * _]mulrAC.
by apply: ler_wpmul2r => //; apply: ler_wpmul2l.
Qed.

Lemma announced_never side h x : has (@is_fresh F U bool_finType) h -> reach side h x = 0.
Proof.
elim: h x => [|e h IH] x //=; case: e => [b b'||K|c] //=.
- by move=> fr; rewrite big1 // => y _; rewrite IH ?mul0r.
- by move=> _; rewrite /refused big1 // => y _; rewrite mulr0.
- by move/IH=> ->; rewrite mul0r.
- by move/IH=> ->; rewrite mul0r.
Qed.

Lemma all_worth_le b h : 1 <= b ->
  weights_ok (fun K => (forall x, 0 < K x) /\ (forall x y, K x <= b * K y)) h ->
  all_worth h <= b ^+ count (@is_weigh F U bool_finType) h.
Proof.
move=> b1; have b0 : 0 <= b by apply: le_trans ler01 b1.
elim: h => [|e h IH] /=; first by rewrite expr0.
case: e => [rows rows'||K|c] //=; case=> [[pos ratio] ok]; rewrite add1n exprSr.
apply: ler_pmul; rewrite ?IH //.
- apply: le_trans ler01 _; apply: all_worth_ge1; apply: weights_ok_sub ok => L [].
  by move=> posL _; apply: posL.
- by apply: le_trans ler01 (worth_ge1 pos).
by rewrite /worth ler_pdivr_mulr.
Qed.

Lemma bits_ratio b h : 1 <= b -> fair h ->
  weights_ok (fun K => (forall x, 0 < K x) /\ (forall x y, K x <= b * K y)) h ->
  total true h
  <= p / (1 - p) * (1 - p + p * b ^+ count (@is_weigh F U bool_finType) h) * total false h.
Proof.
move=> b1 fh ok; have p'0 : 0 < 1 - p by rewrite subr_gt0.
have ok' : weights_ok positive h by apply: weights_ok_sub ok => K [].
have t0 side : 0 <= total side h by apply: sumr_ge0 => x _; apply: reach_pos.
have b0 : 0 <= b ^+ count (@is_weigh F U bool_finType) h.
  by rewrite exprn_ge0 // (le_trans ler01).
case fr: (has (@is_fresh F U bool_finType) h).
  rewrite {1}/Table.total big1 => [|x _]; last exact: announced_never.
  apply: mulr_ge0 => //; apply: mulr_ge0; first by rewrite divr_ge0 // ltW.
  by apply: addr_ge0; [exact: ltW | apply: mulr_ge0].
have := bits_history (negbT fr) fh ok'; rewrite -ler_pdivl_mull // => /le_trans; apply.
rewrite mulrA; apply: ler_wpmul2r => //; rewrite mulrA [_^-1 * p]mulrC.
apply: ler_wpmul2l; first by rewrite mulr_ge0 // invr_ge0 ltW.
by rewrite ler_add2l; apply: ler_wpmul2l => //; apply: all_worth_le.
Qed.

End Bit.

Section BitTable.

Variables (F : realFieldType) (U : eqType) (I : finType) (request answer : Type).
Variable address : U -> option I.
Variable publish : request -> {ffun I -> bool} -> answer -> F.
Variable p : F.
Variable redraw : I -> batch U -> option F.

(* Presence bits begin with 1 - p. [redraw i rows] is what the rows of cell i in a batch do: nothing
   or a draw from p (a user comes) or from 1 - p (a user leaves), or from any law between the two. *)
Definition presence_bits : program F U :=
  table_program address (fun=> coin (1 - p)) (fun i => bit_move (redraw i)) (fun=> @refused F) publish.

Hypothesis p_half : 1 - p <= p.
Hypothesis p1 : p < 1.
Hypothesis redraw_covers : forall i rows q, redraw i rows = Some q -> covers p q.

(* THE EXACT JOINT LOSS OF BITS AND RELEASES. One look, and n releases whose probabilities change by
   a factor of at most b with one bit, before and after the look, cost p/(1-p) (1 - p + p b^n) in
   all. Any histories of a user are compared, with departures, and users may share bits. *)
Theorem bits_and_releases (b : F) :
  1 <= b -> (forall q t a, 0 < publish q t a) ->
  (forall i q t a x y, publish q (put t i x) a <= b * publish q (put t i y) a) ->
  pan_private (@user_neighbours F U presence_bits)
    (fun adv tr => p / (1 - p) * (1 - p + p * b ^+ releases tr)).
Proof.
move=> b1 pos ratio; have p'0 : 0 < 1 - p by rewrite subr_gt0.
have q0c : covers p (1 - p) by split.
have pg : 0 < p by apply: lt_le_trans p_half.
have r1 : 1 <= p / (1 - p) by rewrite ler_pdivl_mulr // mul1r.
apply: (@table_ratio F U I bool_finType request answer address (fun=> coin (1 - p)) _ _ publish
  _ _ _ _ (fun _ K => (forall x, 0 < K x) /\ (forall x y, K x <= b * K y))
  (fun n _ => p / (1 - p) * (1 - p + p * b ^+ n))) => //.
- by move=> _ x; apply: (coin_ge0 p1).
- by move=> i rows x y; apply: (bit_move_ge0 (@redraw_covers i) p1).
- by move=> q t a; apply: ltW.
- move=> n _; apply: (le_trans r1); apply: ler_pemulr; first exact: le_trans ler01 r1.
  apply: (@le_trans _ _ (1 - p + p)); first by rewrite subrK.
  by rewrite ler_add2l; apply: ler_pemulr; [exact: ltW | exact: exprn_ege1].
- by move=> i h fh ok; apply: (bits_ratio (@redraw_covers i) q0c p1 p_half).
Qed.

(* REDRAWN BITS. One look costs p/(1-p), however often a user comes and leaves. *)
Theorem redrawn_bits (b : F) :
  1 <= b -> (forall q t a, 0 < publish q t a) ->
  (forall i q t a x y, publish q (put t i x) a <= b * publish q (put t i y) a) ->
  forall (adv : adversary presence_bits) data data' tr, user_neighbours data data' -> covered adv tr ->
  releases tr = 0%N -> view adv data tr <= p / (1 - p) * view adv data' tr.
Proof.
move=> b1 pos ratio adv data data' tr near cov none.
have := bits_and_releases b1 pos ratio near cov.
by rewrite none expr0 mulr1 subrK mulr1.
Qed.

End BitTable.

(* What the rows of a batch do where users leave: the last row decides. *)
Section Departures.
Variables (F : realFieldType) (U : eqType) (p : F).

Definition last_row_decides (rows : batch U) : option F :=
  if rows is e :: more then Some (if (last e more).2 < 0 then 1 - p else p) else None.

Lemma departures_covered rows q : 1 - p <= p -> last_row_decides rows = Some q -> covers p q.
Proof.
by move=> half; case: rows => [|e more] //= [<-]; case: ifP => _; split.
Qed.
End Departures.
