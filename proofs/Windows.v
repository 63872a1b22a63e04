(* A window that nobody saw: the noise of the state works on top of that of the releases. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring.
From Panprivacy Require Import Ring Model Table Modular Bits.

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

Lemma product_is_more (c d : F) : 1 <= c -> 1 <= d -> c + d <= 1 + c * d.
Proof.
move=> c1 d1; have le : 0 <= (c - 1) * (d - 1) by rewrite mulr_ge0 // subr_ge0.
by apply: (le_by le); fring F.
Qed.

(* The same for weights P and Q whose sums differ by a factor of at most v. *)
Lemma one_more (a b v : F) (P Q K : X -> F) :
  1 <= a -> 1 <= b -> 1 <= v -> (forall x, 0 <= P x) -> (forall x, 0 <= Q x) ->
  (forall x, 0 <= K x) -> (forall x y, K x <= b * K y) ->
  (forall x, P x <= a * Q x) -> (forall x, Q x <= a * P x) ->
  \sum_x P x <= v * (\sum_x Q x) -> \sum_x Q x <= v * (\sum_x P x) ->
  \sum_x P x * K x <= v * ((1 + a * v * b) / (a * v + b)) * (\sum_x Q x * K x).
Proof.
move=> a1 b1 v1 P0 Q0 K0 Kb PQ QP TS ST.
have a0 := le_trans ler01 a1; have b0 := le_trans ler01 b1; have v0 := le_trans ler01 v1.
have c1 : 1 <= a * v by rewrite -[1]mulr1 ler_pmul.
have d0 : 0 < a * v + b by rewrite ltr_paddr // (lt_le_trans ltr01).
have up0 : 0 <= (1 + a * v * b) / (a * v + b).
  by rewrite divr_ge0 ?(ltW d0) // addr_ge0 ?ler01 // !mulr_ge0.
have rhs0 : 0 <= v * ((1 + a * v * b) / (a * v + b)) * (\sum_x Q x * K x).
  by apply: mulr_ge0; [apply: mulr_ge0 | apply: sumr_ge0 => x _; apply: mulr_ge0].
move: TS ST; set T := \sum_x P x; set S := \sum_x Q x => TS ST.
have T0 : 0 <= T by apply: sumr_ge0. have S0 : 0 <= S by apply: sumr_ge0.
move: T0; rewrite le_eqVlt => /orP [/eqP Tz|Tpos].
  have Pz x : P x = 0 by apply/eqP; move: Tz => /esym /eqP; rewrite psumr_eq0 // => /allP; apply; rewrite mem_index_enum.
  by rewrite big1 // => x _; rewrite Pz mul0r.
move: S0; rewrite le_eqVlt => /orP [/eqP Sz|Spos].
  by move: TS; rewrite -Sz mulr0 leNgt Tpos.
case: (pickP (fun x : X => true)) => [x0 _|none]; last first.
  by rewrite big1 // => x; have := none x.
pose least := [arg min_(x < x0) K x]%O.
have low x : K least <= K x by rewrite /least; case: arg_minP => // y _; apply.
have lawP : is_law (fun x => P x / T).
  by split=> [x|]; [rewrite divr_ge0 // ltW | rewrite -mulr_suml divff // gt_eqF].
have lawQ : is_law (fun x => Q x / S).
  by split=> [x|]; [rewrite divr_ge0 // ltW | rewrite -mulr_suml divff // gt_eqF].
have near (A B : X -> F) (s t : F) x : 0 < s -> 0 < t -> 0 <= B x ->
    A x <= a * B x -> s <= v * t -> A x / t <= a * v * (B x / s).
  move=> s0 t0 B0 AB st; rewrite ler_pdivr_mulr //.
  have -> : a * v * (B x / s) * t = a * B x * (v * t / s).
    by move: (s^-1) (B x) => i y; fring F.
  apply: (le_trans AB); rewrite ler_pemulr // ?mulr_ge0 //.
  by rewrite ler_pdivl_mulr // mul1r.
have := @unseen_window (a * v) b (K least) _ _ K c1 b1 (K0 _) lawP lawQ
  (fun x => near _ _ _ _ x Spos Tpos (Q0 x) (PQ x) ST)
  (fun x => near _ _ _ _ x Tpos Spos (P0 x) (QP x) TS) low (fun x => Kb x least).
have out (L : X -> F) t : \sum_x L x / t * K x = (\sum_x L x * K x) / t.
  by rewrite mulr_suml; apply: eq_bigr => x _; rewrite mulrAC.
rewrite !out -ler_pdivl_mull // !mulrA => le.
have le2 : \sum_x P x * K x <= (a * v + b)^-1 * (1 + a * v * b) * ((\sum_x Q x * K x) / S) * T.
  by rewrite -ler_pdivr_mulr // !mulrA.
apply: (le_trans le2); move: rhs0 up0; set up := (1 + _) / _; set q := \sum_x Q x * K x => _ up0.
have q0 : 0 <= q by apply: sumr_ge0 => x _; apply: mulr_ge0.
have -> : (a * v + b)^-1 * (1 + a * v * b) * (q / S) * T = up * q * (T / S).
  by rewrite /up; move: (S^-1) ((a * v + b)^-1) => i j; fring F.
have -> : v * (1 + a * v * b) / (a * v + b) * q = up * q * v.
  by rewrite /up; move: ((a * v + b)^-1) => j; fring F.
by apply: ler_wpmul2l; [apply: mulr_ge0 | rewrite ler_pdivr_mulr].
Qed.

End Unseen.

(* The weights of an answer differ by a factor of at most b between any two values of the cell. *)
Definition cell_moves (F : realFieldType) (X : finType) (b : F) (K : X -> F) : Prop :=
  (forall x, 0 <= K x) /\ (forall x y, K x <= b * K y).

(* Several releases. Before each of them the adversary has seen earlier answers alone. *)
Section Several.

Variables (F : realFieldType) (look : nat -> F) (b : F).
Hypothesis look1 : forall n, 1 <= look n.   (* what a look after n releases would cost *)
Hypothesis b1 : 1 <= b.                     (* what a release costs, if the cell is known *)

(* What n releases of a window cost that nobody saw. *)
Fixpoint unseen (n : nat) : F :=
  if n is m.+1
  then unseen m * ((1 + look m * unseen m * b) / (look m * unseen m + b))
  else 1.

Lemma unseen_ge1 n : 1 <= unseen n.
Proof.
elim: n => [|n IH] //=; have c1 : 1 <= look n * unseen n by rewrite -[1]mulr1 ler_pmul.
apply: mulr_ege1 => //.
have d0 : 0 < look n * unseen n + b.
  by rewrite ltr_paddr ?(le_trans ler01 b1) // (lt_le_trans ltr01).
by rewrite ler_pdivl_mulr // mul1r; apply: product_is_more.
Qed.

Variables (U : eqType) (X : finType).
Variables (first : X -> F) (move : batch U -> X -> X -> F) (fresh : X -> X -> F) (mass : F).
Hypothesis first0 : forall x, 0 <= first x.
Hypothesis move0 : forall rows x y, 0 <= move rows x y.
Hypothesis fresh0 : forall x y, 0 <= fresh x y.
Hypothesis move1 : forall rows x, \sum_y move rows x y = 1.
Hypothesis fresh1 : forall x, \sum_y fresh x y = mass.
Hypothesis mass0 : 0 <= mass.

Variable ok : (X -> F) -> Prop.
Hypothesis ok_ratio : forall K, ok K -> cell_moves b K.

Notation event := (event F U X).
Notation reach := (reach first move fresh).
Notation total := (total first move fresh).
Notation releases h := (count (@is_weigh F U X) h).
Notation unlooked h := (~~ has (@is_show F U X) h).

Hypothesis seen_cell : forall h, fair h -> weights_ok ok h ->
  count (@is_show F U X) h = 1%N -> shown h ->
  total true h <= look (releases h) * total false h.

(* Both streams change places. *)
Fixpoint swapped (h : seq event) : seq event :=
  match h with
  | [::] => [::]
  | Batch c c' :: past => Batch F X c' c :: swapped past
  | e :: past => e :: swapped past
  end.

Lemma reach_swapped side h x : reach side (swapped h) x = reach (~~ side) h x.
Proof.
elim: h x => [|e h IH] x //=; case: e => [c c'||K|d] //=; rewrite ?IH //;
  by apply: eq_bigr => y _; rewrite IH //; case: (side).
Qed.

Lemma unlooked_fair h : unlooked h -> fair h && ~~ shown h.
Proof.
elim: h => [|e h IH] //=; rewrite negb_or; case/andP => ns /IH /andP [-> sh] /=.
by case: e ns => [c c'||K|d] //= _; rewrite ?sh.
Qed.

Lemma swapped_kept h :
  [/\ releases (swapped h) = releases h, has (@is_show F U X) (swapped h) = has (@is_show F U X) h
    & weights_ok ok h -> weights_ok ok (swapped h)].
Proof.
elim: h => [|e h [IHr IHs IHw]] //; case: e => [c c'||K|d]; split; rewrite /= ?IHr ?IHs //.
by case=> okK /IHw.
Qed.

(* A look at the end of an unseen history would show a cell that is likelier by [look] at most. *)
Lemma hidden_cell h x : unlooked h -> weights_ok ok h ->
  reach true h x <= look (releases h) * reach false h x.
Proof.
move=> uh wh; have /andP [fh sh] := unlooked_fair uh.
have shown_total side : total side (Show F U x :: h) = reach side h x.
  rewrite /Table.total (bigD1 x) //= eqxx mulr1 big1 ?addr0 // => y /negPf ->.
  by rewrite mulr0.
have := @seen_cell (Show F U x :: h); rewrite /= !shown_total fh sh /= add0n; apply=> //.
by move: uh; rewrite has_count -leqNgt leqn0 => /eqP ->.
Qed.

Lemma unseen_history h : unlooked h -> weights_ok ok h ->
  total true h <= unseen (releases h) * total false h.
Proof.
have reach0 side g x : weights_ok ok g -> 0 <= reach side g x.
  by move=> wg; apply: reach_ge0 => //; apply: weights_ok_sub wg => K /ok_ratio [].
suff both : unlooked h -> weights_ok ok h ->
    total true h <= unseen (releases h) * total false h /\
    total false h <= unseen (releases h) * total true h.
  by move=> uh wh; case: (both uh wh).
elim: h => [|e h IH] /=; first by rewrite !mul1r.
rewrite negb_or => /andP [ns uh] wh.
have step (g : X -> X -> F) (c : F) (f : X -> F) : (forall x, \sum_y g x y = c) ->
    \sum_y \sum_x f x * g x y = c * \sum_x f x.
  move=> gc; rewrite exchange_big mulr_sumr /=; apply: eq_bigr => x _.
  by rewrite -mulr_sumr gc mulrC.
case: e ns wh => [c c'||K|d] //= _ wh; rewrite ?add0n.
- by case: (IH uh wh); rewrite /Table.total /= !(step _ 1) // !mul1r.
- case: (IH uh wh) => le ge; rewrite /Table.total /= !(step _ mass) // ![unseen _ * _]mulrCA.
  by split; apply: ler_wpmul2l.
case: wh => okK wh; have [le ge] := IH uh wh; have [K0 Kb] := ok_ratio okK.
have [swr sws sww] := swapped_kept h.
have other x : reach false h x <= look (releases h) * reach true h x.
  have := @hidden_cell (swapped h) x; rewrite swr sws !reach_swapped /=; apply=> //; exact: sww.
have one x := hidden_cell x uh wh.
have pos side x : 0 <= reach side h x by apply: reach0.
split; first exact: (one_more (look1 _) b1 (unseen_ge1 _) (pos true) (pos false) K0 Kb one other le ge).
exact: (one_more (look1 _) b1 (unseen_ge1 _) (pos false) (pos true) K0 Kb other one ge le).
Qed.

End Several.

Section Table.

Variables (F : realFieldType) (U : eqType) (I X : finType) (request answer : Type).
Variable address : U -> option I.
Variables (first : I -> X -> F) (move : I -> batch U -> X -> X -> F) (fresh : I -> X -> X -> F).
Variable publish : request -> {ffun I -> X} -> answer -> F.
Notation program := (table_program address first move fresh publish).

(* THE WINDOW THAT NOBODY SAW, RELEASED n TIMES. Let a look after n releases cost [look n], and let one
   cell change a release by a factor of at most b. If nobody looks, n releases cost [unseen look b n]:
   one costs (1 + a b)/(a + b) with a = look 0. *)
Theorem unseen_releases (look : nat -> F) (b mass : F) (ok : I -> (X -> F) -> Prop) :
  (forall n, 1 <= look n) -> 1 <= b -> 0 <= mass ->
  (forall i x, 0 <= first i x) -> (forall i rows x y, 0 <= move i rows x y) ->
  (forall i x y, 0 <= fresh i x y) -> (forall q t a, 0 <= publish q t a) ->
  (forall i rows x, \sum_y move i rows x y = 1) -> (forall i x, \sum_y fresh i x y = mass) ->
  (forall i K, ok i K -> cell_moves b K) ->
  (forall i q (t : {ffun I -> X}) a, ok i (fun x => publish q (put t i x) a)) ->
  (forall i h, fair h -> weights_ok (ok i) h -> count (@is_show F U X) h = 1%N -> shown h ->
     total (first i) (move i) (fresh i) true h
     <= look (count (@is_weigh F U X) h) * total (first i) (move i) (fresh i) false h) ->
  forall (adv : adversary program) data data' tr, user_neighbours data data' -> looks tr = 0%N ->
  view adv data tr <= unseen look b (releases tr) * view adv data' tr.
Proof.
move=> look1 b1 m0 f0 mv0 fr0 p0 mv1 fr1 okr pub seen adv data data' tr near none.
apply: (@by_cells F U I X request answer address first move fresh publish f0 mv0 fr0 p0 ok) => //.
  exact: unseen_ge1.
move=> i h _ wh <- shows _; apply: (@unseen_history F look b look1 b1 U X _ _ _ mass) wh => //.
- by move=> K; apply: okr.
- by move=> g fg wg; apply: seen.
- by rewrite has_count shows none.
Qed.

End Table.

Section Cells.

Variables (F : realFieldType) (U : eqType) (I : finType) (request answer : Type).
Variable address : U -> option I.
Variables (r b p : F).
Hypothesis b1 : 1 <= b.

(* Counters modulo M, with any law of ratio r: a look after n releases costs r b^n. *)
Theorem unseen_counters (X : finZmodType) (noise again : I -> X -> F) (amount : I -> U * int -> X)
    (publish : request -> {ffun I -> X} -> answer -> F) :
  1 <= r -> (forall i x, 0 <= noise i x) -> (forall i, is_law (again i)) ->
  (forall i, bounded_ratio r (noise i)) -> (forall i, bounded_ratio r (again i)) ->
  (forall q t a, 0 <= publish q t a) ->
  (forall i q t a, cell_moves b (fun x => publish q (put t i x) a)) ->
  forall (adv : adversary (counters address noise again amount publish)) data data' tr,
  user_neighbours data data' -> looks tr = 0%N ->
  view adv data tr <= unseen (fun n => r * b ^+ n) b (releases tr) * view adv data' tr.
Proof.
move=> r1 n0 law nr ar p0 pub.
apply: (@unseen_releases F U I X request answer address noise _ _ publish _ b 1
          (fun=> @cell_moves F X b)) => //.
- by move=> n; apply: mulr_ege1 => //; apply: exprn_ege1.
- exact: ler01.
- by move=> *; rewrite ler0n.
- by move=> i x y; case: (law i) => a0 _; apply: a0.
- move=> i rows x; rewrite (bigD1 (x + added (amount i) rows)) //= /add eqxx big1 ?addr0 //.
  by move=> y /negPf ->.
- move=> i x; case: (law i) => _ <-; rewrite (reindex_inj (addIr x)) /=.
  by apply: eq_bigr => y _; rewrite /noised addrK.
move=> i h fh wh one sh; have a0 x : 0 <= again i x by case: (law i) => + _; apply.
have := @counter_ratio F U X (noise i) (again i) (amount i) r b (n0 i) a0 (nr i) (ar i) r1 b1 h fh wh.
by rewrite one sh /cost addn0 expr1.
Qed.

(* Redrawn bits: a look after n releases costs p/(1-p) (1 - p + p b^n). *)
Theorem unseen_bits (publish : request -> {ffun I -> bool} -> answer -> F)
    (redraw : I -> batch U -> option F) :
  1 - p <= p -> p < 1 -> (forall i rows q, redraw i rows = Some q -> covers p q) ->
  (forall q t a, 0 < publish q t a) ->
  (forall i q t a x y, publish q (put t i x) a <= b * publish q (put t i y) a) ->
  forall (adv : adversary (presence_bits address publish p redraw)) data data' tr,
  user_neighbours data data' -> looks tr = 0%N ->
  view adv data tr
  <= unseen (fun n => p / (1 - p) * (1 - p + p * b ^+ n)) b (releases tr) * view adv data' tr.
Proof.
move=> half p1 redraws pos ratio; have p'0 : 0 < 1 - p by rewrite subr_gt0.
have q0 : covers p (1 - p) by split.
have r1 : 1 <= p / (1 - p) by rewrite ler_pdivl_mulr // mul1r.
have p0 : 0 <= p by apply: le_trans half; apply: ltW.
apply: (@unseen_releases F U I bool_finType request answer address (fun=> coin (1 - p)) _ _ publish
  _ b 0 (fun _ K => (forall x, 0 < K x) /\ (forall x y, K x <= b * K y))) => //.
- move=> n; apply: mulr_ege1 => //; rewrite -{1}[1](subrK p) ler_add2l.
  by apply: ler_pemulr => //; apply: exprn_ege1.
- by move=> _ x; apply: (coin_ge0 p1).
- by move=> i rows x y; apply: (bit_move_ge0 (@redraws i) p1).
- by move=> q t a; apply: ltW.
- move=> i rows x; rewrite /bit_move; case: (redraw i rows) => [q|]; first exact: coin_sum.
  by rewrite (bigD1 x) //= eqxx big1 ?addr0 // => y ne; rewrite eq_sym (negPf ne).
- by move=> i x; rewrite big1.
- by move=> i K [K0 Kb]; split=> // x; apply: ltW.
move=> i h fh wh one sh.
exact: (@bits_ratio F U p (redraw i) (@redraws i) (1 - p) q0 p1 half b h b1 fh wh).
Qed.

End Cells.
