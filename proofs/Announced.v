(* Presence bits under announced intrusions: what k announced looks and one more cost.

   Here is one bit and two histories of it; a table costs what one cell costs (Table.v). As the code does,
   a draw after e announcements is weaker by s^e, so it says whether its user ever came, not when. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring.
From Panprivacy Require Import Ring Model Bits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Announced.

Variables (F : realFieldType) (U : eqType).
Variables (p keep : F).      (* the largest probability of a first draw; that of a bit to stay *)
Add Ring Fring : (field_is_ring F).

(* A law of a bit by its mean in units of +1 and -1. *)
Definition mean (q : F) : F := q - (1 - q).
Notation t := (mean p).
Notation s := (mean keep).

Hypotheses (t0 : 0 <= t) (t1 : t < 1) (s0 : 0 <= s) (s1 : s < 1).

(* [draw e rows]: the probability of a 1 if rows redraw the bit after e announcements; None if it stays. *)
Variable draw : nat -> batch U -> option F.
Hypothesis draw_small : forall e rows q, draw e rows = Some q -> `|mean q| <= t * s ^+ e.
Variable q0 : F.
Hypothesis q0_small : `|mean q0| <= t.

(* Rows of two streams; an announcement, which flips the bit with probability 1 - keep; a look. *)
Inductive step := Rows of batch U & batch U | Announced | Seen of bool.

Fixpoint epoch (h : seq step) : nat :=
  match h with [::] => 0 | Announced :: past => (epoch past).+1 | _ :: past => epoch past end.

(* The probability that all looks show what they show, and that the bit is x. *)
Fixpoint law (side : bool) (h : seq step) (x : bool) : F :=
  match h with
  | [::] => coin q0 x
  | Rows b b' :: past =>
      if draw (epoch past) (if side then b else b') is Some q
      then coin q x * (law side past true + law side past false) else law side past x
  | Announced :: past => keep * law side past x + (1 - keep) * law side past (~~ x)
  | Seen c :: past => law side past x * (x == c)%:R
  end.

Definition all_of side h : F := law side h true + law side h false.
Definition lean side h : F := law side h true - law side h false.

Fixpoint was_seen (h : seq step) : bool :=
  match h with
  | [::] => false
  | Seen _ :: _ => true
  | Announced :: _ => false
  | Rows _ _ :: past => was_seen past
  end.

(* At most one look in each epoch. *)
Fixpoint one_look (h : seq step) : bool :=
  match h with
  | [::] => true
  | Seen _ :: past => one_look past && ~~ was_seen past
  | _ :: past => one_look past
  end.

(* The second stream lacks some updates of the user: a bit that nobody redraws in the first stays in
   the second. *)
Fixpoint nested (h : seq step) : Prop :=
  match h with
  | [::] => True
  | Rows b b' :: past => (draw (epoch past) b = None -> draw (epoch past) b' = None) /\ nested past
  | _ :: past => nested past
  end.

(* How far a bit leans at a look of epoch e, in the first stream if it was redrawn, and in the second. *)
Definition most (e : nat) : F := match e with 0 => t | 1 => t * s | _ => s ^+ 2 end.
Definition other (e : nat) : F := if e is 0 then t else s.

(* What looks in the first n epochs cost. *)
Definition cost (e : nat) : F := (1 + most e) / (1 - other e).
Fixpoint costs (n : nat) : F := if n is m.+1 then costs m * cost m else 1.

Lemma ss : s ^+ 2 <= s.
Proof. by rewrite expr2 ler_pimull // ltW. Qed.

Lemma ts : t * s <= s.
Proof. by rewrite ler_pimull // ltW. Qed.

Lemma most_ge0 e : 0 <= most e.
Proof. by case: e => [|[|e]] //=; rewrite ?mulr_ge0 ?exprn_ge0. Qed.

Lemma most_other e : most e <= other e.
Proof. by case: e => [|[|e]] //=; rewrite ?ts ?ss. Qed.

Lemma other_lt1 e : other e < 1. Proof. by case: e. Qed.
Lemma other_ge0 e : 0 <= other e. Proof. by case: e. Qed.

Lemma draws_below e : t * s ^+ e <= most e.
Proof.
case: e => [|[|e]] /=; rewrite ?expr0 ?mulr1 ?expr1 //.
rewrite -[e.+2]addn2 exprD mulrA ler_pimull ?exprn_ge0 //.
by rewrite mulr_ile1 ?exprn_ge0 ?exprn_ile1 // ltW.
Qed.

Lemma most_decays e : s * most e <= most e.+1.
Proof.
case: e => [|[|e]] /=; first by rewrite mulrC.
- by rewrite mulrCA -expr2 ler_pimull ?exprn_ge0 // ltW.
- by rewrite ler_pimull ?exprn_ge0 // ltW.
Qed.

Lemma other_decays e : s * other e <= other e.+1.
Proof. by rewrite ler_pimulr // ltW // other_lt1. Qed.

Lemma cost_ge1 e : 1 <= cost e.
Proof.
rewrite /cost ler_pdivl_mulr ?subr_gt0 ?other_lt1 // mul1r.
by rewrite ler_add2l (le_trans _ (most_ge0 e)) // oppr_le0 other_ge0.
Qed.

Lemma costs_ge1 n : 1 <= costs n.
Proof. by elim: n => [|n IH] //=; apply: mulr_ege1 => //; apply: cost_ge1. Qed.

Lemma coin_all q : coin q true + coin q false = 1 :> F.
Proof. by rewrite /coin addrC subrK. Qed.

(* One step, by all that a law weighs and by how far it leans. *)
Lemma rows_step side b b' h (rows := if side then b else b') :
  all_of side (Rows b b' :: h) = all_of side h /\
  lean side (Rows b b' :: h)
  = if draw (epoch h) rows is Some q then mean q * all_of side h else lean side h.
Proof.
rewrite /all_of /lean /= -/rows; case: (draw _ rows) => [q|] //=.
by rewrite -mulrDl -mulrBl (coin_all q) mul1r.
Qed.

Lemma announced_step side h :
  all_of side (Announced :: h) = all_of side h /\ lean side (Announced :: h) = s * lean side h.
Proof.
by rewrite /all_of /lean /mean /=; split; move: (law side h true) (law side h false) => x y; fring F.
Qed.

Definition sign (c : bool) (x : F) : F := if c then x else - x.

Lemma seen_step side c h :
  [/\ all_of side (Seen c :: h) = law side h c,
      lean side (Seen c :: h) = sign c (law side h c)
    & 2%:R * law side h c = all_of side h + sign c (lean side h)].
Proof.
rewrite /all_of /lean /sign; case: c => /=; rewrite !mulr1 !mulr0 ?addr0 ?add0r ?subr0 ?sub0r; split=> //.
- by rewrite mulr_natl mulr2n; move: (law side h true) (law side h false) => x y; fring F.
- by rewrite mulr_natl mulr2n; move: (law side h true) (law side h false) => x y; fring F.
Qed.

Lemma norm_sign c x : `|sign c x| = `|x|.
Proof. by case: c; rewrite /sign ?normrN. Qed.

Definition invariant (h : seq step) : Prop :=
  let A := all_of true h in let B := all_of false h in
  let a := lean true h in let b := lean false h in let e := epoch h in
  [/\ `|a| <= A, `|b| <= B,
      A <= costs (e + was_seen h) * B /\ B <= costs (e + was_seen h) * A
    & if was_seen h then a * B = b * A \/ `|a| <= t * s ^+ e * A
      else `|b| <= other e * B /\ (a * B = b * A \/ `|a| <= most e * A)].

(* A look at two bits. Both are equally likely to be what it shows, or each leans by a bounded part. *)
Lemma look_costs (x y c A B a b : F) : 1 <= c -> 0 <= x -> x <= y -> y < 1 ->
  `|a| <= A -> `|b| <= B -> `|b| <= y * B -> (a * B = b * A \/ `|a| <= x * A) ->
  A <= c * B -> B <= c * A ->
  A + a <= c * ((1 + x) / (1 - y)) * (B + b) /\ B + b <= c * ((1 + x) / (1 - y)) * (A + a).
Proof.
move=> c1 x0 xy y1 aA bB byB cases AB BA.
have c0 : 0 <= c := le_trans ler01 c1; have y0 : 0 <= y := le_trans x0 xy.
have x1 : x < 1 := le_lt_trans xy y1.
have A0 : 0 <= A := le_trans (normr_ge0 _) aA; have B0 : 0 <= B := le_trans (normr_ge0 _) bB.
have At0 : 0 <= A + a by rewrite -ler_subl_addl sub0r; move: aA; rewrite ler_norml => /andP [].
have Bt0 : 0 <= B + b by rewrite -ler_subl_addl sub0r; move: bB; rewrite ler_norml => /andP [].
have dy : 0 < 1 - y by rewrite subr_gt0. have dx : 0 < 1 - x by rewrite subr_gt0.
have q1 : 1 <= (1 + x) / (1 - y).
  by rewrite ler_pdivl_mulr // mul1r ler_add2l (le_trans _ x0) // oppr_le0.
case: cases => [same|axA].
  have cross : (A + a) * B = A * (B + b) by rewrite mulrDl same; fring F.
  have grow (z z' : F) : 0 <= z' -> z <= c * z' -> z <= c * ((1 + x) / (1 - y)) * z'.
    move=> z0 le; apply: (le_trans le); rewrite -mulrA; apply: ler_wpmul2l => //.
    by rewrite ler_pemull.
  have zero (z w : F) : `|z| <= w -> w <= 0 -> w + z = 0.
    move=> zw w0; have w00 : w = 0 by apply/eqP; rewrite eq_le w0 (le_trans (normr_ge0 z)).
    by apply/eqP; rewrite w00 add0r -normr_eq0 eq_le normr_ge0 -w00 zw.
  split; apply: grow => //.
    move: B0; rewrite le_eqVlt => /orP [/eqP Bz|Bp].
      by rewrite (zero a A) ?mulr_ge0 //; move: AB; rewrite -Bz mulr0.
    rewrite -(ler_pmul2r Bp) cross -mulrA [(B + b) * B]mulrC mulrA; exact: ler_wpmul2r.
  move: A0; rewrite le_eqVlt => /orP [/eqP Az|Ap].
    by rewrite (zero b B) ?mulr_ge0 //; move: BA; rewrite -Az mulr0.
  rewrite -(ler_pmul2r Ap); have -> : c * (A + a) * A = (A + a) * (c * A) by fring F.
  by have -> : (B + b) * A = (A + a) * B; [rewrite cross mulrC | apply: ler_wpmul2l].
have up (z w v : F) : `|z| <= v * w -> w + z <= (1 + v) * w.
  by rewrite ler_norml => /andP [_ le]; rewrite mulrDl mul1r ler_add2l.
have down (z w v : F) : `|z| <= v * w -> (1 - v) * w <= w + z.
  by rewrite ler_norml => /andP [le _]; rewrite mulrBl mul1r ler_add2l.
have fraction (z w v : F) : c * (z / w) * v = c * z * v / w.
  by move: (w^-1) => i; fring F.
split.
  apply: (le_trans (up _ _ _ axA)); rewrite fraction ler_pdivl_mulr //.
  apply: (@le_trans _ _ ((1 + x) * (c * B) * (1 - y))).
    by apply: ler_wpmul2r; [exact: ltW | apply: ler_wpmul2l => //; apply: addr_ge0 ler01 x0].
  have -> : (1 + x) * (c * B) * (1 - y) = c * (1 + x) * ((1 - y) * B) by fring F.
  by apply: ler_wpmul2l; rewrite ?mulr_ge0 ?addr_ge0 ?ler01 // down.
apply: (le_trans (up _ _ _ byB)).
apply: (@le_trans _ _ (c * ((1 + y) / (1 - x)) * (A + a))).
  rewrite fraction ler_pdivl_mulr //.
  apply: (@le_trans _ _ ((1 + y) * (c * A) * (1 - x))).
    by apply: ler_wpmul2r; [exact: ltW | apply: ler_wpmul2l => //; apply: addr_ge0 ler01 y0].
  have -> : (1 + y) * (c * A) * (1 - x) = c * (1 + y) * ((1 - x) * A) by fring F.
  by apply: ler_wpmul2l; rewrite ?mulr_ge0 ?addr_ge0 ?ler01 // down.
apply: ler_wpmul2r => //; apply: ler_wpmul2l => //.
rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr //.
have -> : (1 + y) * (1 - y) = 1 - y ^+ 2 by fring F.
have -> : (1 + x) * (1 - x) = 1 - x ^+ 2 by fring F.
by rewrite ler_add2l ler_opp2 ler_pexpn2r.
Qed.

Lemma all_ge0 side h : `|lean side h| <= all_of side h -> 0 <= all_of side h.
Proof. exact: le_trans (normr_ge0 _). Qed.

Lemma drawn e rows q Z : draw e rows = Some q -> 0 <= Z -> `|mean q * Z| <= t * s ^+ e * Z.
Proof. by move=> d Z0; rewrite normrM (ger0_norm Z0) ler_wpmul2r // (draw_small d). Qed.

Lemma rows_kept b b' h :
  (draw (epoch h) b = None -> draw (epoch h) b' = None) -> invariant h -> invariant (Rows b b' :: h).
Proof.
move=> stays [aA bB AB rest]; have [A' a'] := rows_step true b b' h; have [B' b''] := rows_step false b b' h.
have A0 := all_ge0 aA; have B0 := all_ge0 bB.
have below (Z : F) : 0 <= Z -> t * s ^+ epoch h * Z <= Z.
  move=> Z0; rewrite ler_pimull // (le_trans (draws_below _)) // (le_trans (most_other _)) //.
  by rewrite ltW // other_lt1.
have small e rows q Z : draw e rows = Some q -> 0 <= Z -> e = epoch h -> `|mean q * Z| <= Z.
  by move=> d Z0 e'; apply: le_trans (drawn d Z0) _; rewrite e' below.
rewrite /invariant A' B' a' b'' /=; split=> //.
- by case d: (draw _ b) => [q|] //; apply: small d _ _.
- by case d: (draw _ b') => [q|] //; apply: small d _ _.
move: rest; case: (was_seen h).
  case d: (draw _ b) => [q|]; last by rewrite (stays d).
  by move=> _; right; apply: drawn d _.
case=> bo rest; split.
  case d: (draw _ b') => [q|] //; apply: (le_trans (drawn d B0)); apply: ler_wpmul2r => //.
  exact: le_trans (draws_below _) (most_other _).
case d: (draw _ b) => [q|]; last by rewrite (stays d).
right; apply: (le_trans (drawn d A0)); apply: ler_wpmul2r => //; exact: draws_below.
Qed.

(* The look of the present epoch is paid for, whether it has been or not. *)
Lemma epoch_paid h (z w : F) :
  0 <= w -> z <= costs (epoch h + was_seen h) * w -> z <= costs (epoch h).+1 * w.
Proof.
move=> w0 le; apply: (le_trans le); apply: ler_wpmul2r => //; case: (was_seen h); rewrite ?addn1 // addn0 /=.
by rewrite ler_pemulr ?cost_ge1 // (le_trans ler01 (costs_ge1 _)).
Qed.

Lemma announced_kept h : invariant h -> invariant (Announced :: h).
Proof.
move=> [aA bB [AB BA] rest]; have [A' a'] := announced_step true h; have [B' b'] := announced_step false h.
have A0 := all_ge0 aA; have B0 := all_ge0 bB.
have norm_s z : `|s * z| = s * `|z| by rewrite normrM ger0_norm.
have shrink (z w : F) : `|z| <= w -> 0 <= w -> `|s * z| <= w.
  by move=> zw w0; rewrite norm_s (le_trans _ zw) // ler_pimull // ltW.
rewrite /invariant A' B' a' b' [was_seen (_ :: _)]/= addn0 /=.
have same : lean true h * all_of false h = lean false h * all_of true h ->
    s * lean true h * all_of false h = s * lean false h * all_of true h.
  by move=> e; rewrite -!mulrA e.
split; [exact: shrink | exact: shrink | by split; apply: epoch_paid |].
move: rest; case: (was_seen h) => [rest|[bo rest]]; split.
- by rewrite norm_s ler_wpmul2l.
- case: rest => [e|le]; [by left; apply: same | right].
  rewrite norm_s; apply: (le_trans (ler_wpmul2l s0 le)); rewrite mulrA; apply: ler_wpmul2r => //.
  exact: le_trans (ler_wpmul2l s0 (draws_below _)) (most_decays _).
- rewrite norm_s; apply: (le_trans (ler_wpmul2l s0 bo)); rewrite mulrA; apply: ler_wpmul2r => //.
  exact: other_decays.
- case: rest => [e|le]; [by left; apply: same | right].
  rewrite norm_s; apply: (le_trans (ler_wpmul2l s0 le)); rewrite mulrA; apply: ler_wpmul2r => //.
  exact: most_decays.
Qed.

Lemma seen_kept c h : ~~ was_seen h -> invariant h -> invariant (Seen c :: h).
Proof.
move/negPf=> ns; rewrite /invariant ns addn0 => -[aA bB [AB BA] [bo rest]].
have [A' a' twoA] := seen_step true c h; have [B' b' twoB] := seen_step false c h.
rewrite A' B' a' b' [was_seen _]/= [epoch _]/= addn1.
have two0 : 0 < 2%:R :> F by rewrite ltr0n.
have low (z w : F) : `|z| <= w -> 0 <= w + sign c z.
  move=> zw; have : `|sign c z| <= w by rewrite norm_sign.
  by rewrite ler_norml => /andP [le _]; rewrite -ler_subl_addl sub0r.
have posA : 0 <= law true h c by rewrite -(ler_pmul2l two0) mulr0 twoA low.
have posB : 0 <= law false h c by rewrite -(ler_pmul2l two0) mulr0 twoB low.
have rest' : sign c (lean true h) * all_of false h = sign c (lean false h) * all_of true h
    \/ `|sign c (lean true h)| <= most (epoch h) * all_of true h.
  by rewrite norm_sign; case: rest => [e|]; [left | right]; rewrite /sign; case: (c); rewrite ?mulNr ?e.
have := look_costs (costs_ge1 (epoch h)) (most_ge0 _) (most_other _) (other_lt1 _)
  (_ : `|sign c (lean true h)| <= _) (_ : `|sign c (lean false h)| <= _)
  (_ : `|sign c (lean false h)| <= _) rest' AB BA.
rewrite !norm_sign -twoA -twoB => /(_ aA bB bo) [one two].
have half (z w k : F) : 2%:R * z <= k * (2%:R * w) -> z <= k * w.
  by rewrite mulrCA ler_pmul2l.
split; rewrite ?norm_sign ?ger0_norm //; first by split; apply: half.
by left; rewrite /sign; case: (c); rewrite ?mulNr mulrC.
Qed.

Lemma invariant_holds h : one_look h -> nested h -> invariant h.
Proof.
elim: h => [|e h IH].
  move=> _ _; have all1 side : all_of side [::] = 1 by rewrite /all_of /= coin_all.
  have small : `|mean q0| <= 1 by apply: le_trans q0_small _; apply: ltW.
  rewrite /invariant !all1 /= !mulr1 ?mul1r; split=> //.
  by split; [|right].
case: e => [b b'||c] /=.
- by move=> one [stays /(IH one)]; apply: rows_kept.
- by move=> one /(IH one); apply: announced_kept.
- by case/andP=> one ns /(IH one); apply: seen_kept.
Qed.

(* BITS AFTER ANNOUNCED INTRUSIONS. Looks in k + 1 epochs, of which the first k are announced, cost at most
   [costs k.+1], the product of (1 + t)/(1 - t), of (1 + t s)/(1 - s), and of (1 + s^2)/(1 - s) for each
   later one: from either stream to the other, if one lacks some updates of the user. *)
Theorem announced_bits h : one_look h -> nested h ->
  all_of true h <= costs (epoch h).+1 * all_of false h /\
  all_of false h <= costs (epoch h).+1 * all_of true h.
Proof.
move=> one nest; have [aA bB [AB BA] _] := invariant_holds one nest.
by split; apply: epoch_paid => //; apply: all_ge0.
Qed.

End Announced.
