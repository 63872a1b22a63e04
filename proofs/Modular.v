(* Counters modulo M: cells that begin with noise, and to which deltas are added.

   The values of a cell are a finite group, such as the residues modulo M (or bits, for parities).
   The noise has any law whose probabilities differ by a factor of at most r. What an update adds is
   any function of it, so scaled counters and rounded deltas are included. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Panprivacy Require Import Model Table.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Counter.

Variables (F : realFieldType) (U : eqType) (X : finZmodType).
Variables (noise again : X -> F).        (* the law at the start, and that of an announcement *)
Variable amount : U * int -> X.          (* what an update adds *)
Variable r b : F.                        (* what a look and a release may cost *)

Hypothesis noise0 : forall x, 0 <= noise x.
Hypothesis again0 : forall x, 0 <= again x.
Hypothesis noise_ratio : bounded_ratio r noise.
Hypothesis again_ratio : bounded_ratio r again.
Hypothesis r1 : 1 <= r.
Hypothesis b1 : 1 <= b.

Definition added (rows : batch U) : X := \sum_(e <- rows) amount e.

(* An update draws no coin. *)
Definition add (rows : batch U) (x y : X) : F := (y == x + added rows)%:R.

(* An announced intrusion adds fresh noise, or takes it away: then [again x] is [noise (- x)]. *)
Definition noised (x y : X) : F := again (y - x).

(* A release has weights that differ by a factor of at most b between any two values of the cell. *)
Definition release_ratio (K : X -> F) : Prop :=
  (forall x, 0 <= K x) /\ (forall x y, K x <= b * K y).

Notation reach := (reach noise add noised).
Notation total := (total noise add noised).

(* After an addition the cell is where it was, moved. *)
Lemma reach_add side rows rows' past x :
  reach side (Batch F X rows rows' :: past) x
  = reach side past (x - added (if side then rows else rows')).
Proof.
rewrite /= (bigD1 (x - added (if side then rows else rows'))) //= /add subrK eqxx mulr1.
rewrite big1 ?addr0 // => y ne; rewrite (_ : (x == _) = false) ?mulr0 //.
by apply/eqP => xy; rewrite xy addrK eqxx in ne.
Qed.

(* The two histories, with the cell hidden: any value in one is at most [c] times as likely as any
   value in the other. *)
Definition hidden (c : F) (h : seq (event F U X)) : Prop :=
  forall x y, reach true h x <= c * reach false h y.

(* With the cell seen: its value is known in both. *)
Definition pinned (c : F) (h : seq (event F U X)) : Prop :=
  exists v v', [/\ forall x, x != v -> reach true h x = 0,
                   forall y, y != v' -> reach false h y = 0
                 & reach true h v <= c * reach false h v'].

Definition cost (n k : nat) : F := r ^+ k * b ^+ n.

Lemma cost_ge0 n k : 0 <= cost n k.
Proof. by rewrite mulr_ge0 // exprn_ge0 // (le_trans ler01). Qed.

Lemma cost_ge1 n k : 1 <= cost n k.
Proof.
rewrite /cost -[1]mulr1; apply: ler_pmul => //; exact: exprn_ege1.
Qed.

Lemma cost_look n k : cost n k * r = cost n k.+1.
Proof. by rewrite /cost exprSr mulrAC. Qed.

Lemma cost_release n k : cost n k * b = cost n.+1 k.
Proof. by rewrite /cost exprSr mulrA. Qed.

(* Looks: one is paid for as long as the cell is hidden, and is spent when it is seen. *)
Lemma two_states h : fair h -> weights_ok release_ratio h ->
  let n := count (@is_weigh F U X) h in let k := count (@is_show F U X) h in
  if shown h then pinned (cost n k) h else hidden (cost n k.+1) h.
Proof.
have r0 : 0 <= r by apply: le_trans ler01 r1.
have b0 : 0 <= b by apply: le_trans ler01 b1.
elim: h => [|e h IH] /=.
  by move=> _ _ x y; rewrite /cost expr1 expr0 mulr1 /=; apply: noise_ratio.
have ge0 side x : weights_ok release_ratio h -> 0 <= reach side h x.
  move=> ok; apply: reach_ge0 => //; first by move=> ? ? ?; rewrite ler0n.
    by move=> *; apply: again0.
  by apply: weights_ok_sub ok => K [].
case: e => [rows rows'||K|c] /andP [fh show] ok /=; rewrite ?add0n ?add1n.
- move/(_ fh ok): IH; rewrite /=; case: (shown h).
    case=> v [v' [l rr bd]]; exists (v + added rows), (v' + added rows').
    split=> [x ne|y ne|].
    + by rewrite reach_add l //=; apply: contra ne => /eqP <-; rewrite subrK.
    + by rewrite reach_add rr //=; apply: contra ne => /eqP <-; rewrite subrK.
    + by rewrite !reach_add /= !addrK.
  by move=> hid x y; rewrite !reach_add /=; apply: hid.
- move/(_ fh ok): IH; rewrite /=; case: (shown h).
    case=> v [v' [l rr bd]] x y.
    rewrite /= (bigD1 v) //= [X in _ + X]big1 ?addr0 => [|z /l ->]; last by rewrite mul0r.
    rewrite (bigD1 v') //= [X in _ * (_ + X)]big1 ?addr0 => [|z /rr ->]; last by rewrite mul0r.
    apply: (le_trans (ler_pmul (ge0 _ _ ok) (again0 _) bd (again_ratio (x - v) (y - v')))).
    by rewrite mulrACA cost_look.
  move=> hid x y; rewrite /= mulr_sumr.
  have shift side z : \sum_w reach side h w * noised w z = \sum_w reach side h (z - w) * again w.
    rewrite (reindex_inj (inv_inj (fun w => subKr z w))) /=.
    by apply: eq_bigr => w _; rewrite /noised subKr.
  rewrite -mulr_sumr !shift mulr_sumr; apply: ler_sum => w _.
  by rewrite mulrA; apply: ler_wpmul2r.
- case: ok => [[k0 kr] ok]; move/(_ fh ok): IH; rewrite /=; case: (shown h).
    case=> v [v' [l rr bd]]; exists v, v'; split=> [x|y|] /=.
    + by move/l=> ->; rewrite mul0r.
    + by move/rr=> ->; rewrite mul0r.
    apply: (le_trans (ler_pmul (ge0 _ _ ok) (k0 _) bd (kr v v'))).
    by rewrite mulrACA cost_release.
  move=> hid x y /=.
  apply: (le_trans (ler_pmul (ge0 _ _ ok) (k0 _) (hid x y) (kr x y))).
  by rewrite mulrACA cost_release.
- move/(_ fh ok): IH; rewrite /= in show; rewrite /= (negPf show) => hid.
  exists c, c; split=> [x /negPf ne|y /negPf ne|] /=; rewrite ?ne ?mulr0 //.
  by rewrite !eqxx !mulr1; apply: hid.
Qed.

Lemma counter_ratio h : fair h -> weights_ok release_ratio h ->
  total true h
  <= cost (count (@is_weigh F U X) h) (count (@is_show F U X) h + ~~ shown h)%N * total false h.
Proof.
move=> fh ok; have := two_states fh ok; rewrite /=; case: (shown h); rewrite ?addn0 ?addn1.
  case=> v [v' [l rr bd]]; rewrite /Table.total (bigD1 v) //= [X in _ + X]big1 ?addr0 => [|z /l ->] //.
  by rewrite (bigD1 v') //= [X in _ * (_ + X)]big1 ?addr0 => [|z /rr ->].
by move=> hid; rewrite /Table.total mulr_sumr; apply: ler_sum => x _; apply: hid.
Qed.

End Counter.

Section CounterTable.

Variables (F : realFieldType) (U : eqType) (I : finType) (X : finZmodType).
Variables (request answer : Type).
Variable address : U -> option I.
Variables (noise again : I -> X -> F) (amount : I -> U * int -> X).
Variable publish : request -> {ffun I -> X} -> answer -> F.

Definition counters : program F U :=
  table_program address noise (fun i => @add F U X (amount i)) (fun i => @noised F X (again i)) publish.

(* MODULAR CELLS. Let no value of the noise be more than r times as likely as another one, and let
   a change of one cell change the law of each release by a factor of at most b. Then everything
   that is seen at one look in each epoch, and all n releases, cost at most r^epochs b^n: r b^n if
   nothing is announced, and r^(k+1) b^n with k announced intrusions and one more look. Deltas,
   states, the number of users of a cell and all histories are arbitrary. *)
Theorem modular_cells (r b : F) :
  1 <= r -> 1 <= b ->
  (forall i x, 0 <= noise i x) -> (forall i x, 0 <= again i x) ->
  (forall i, bounded_ratio r (noise i)) -> (forall i, bounded_ratio r (again i)) ->
  (forall q t a, 0 <= publish q t a) ->
  (forall i q t a, release_ratio b (fun x => publish q (put t i x) a)) ->
  pan_private (@user_neighbours F U counters)
    (fun adv tr => r ^+ epochs adv tr * b ^+ releases tr).
Proof.
move=> r1 b1 n0 a0 nr ar p0 pub.
apply: (@table_ratio F U I X request answer address noise _ _ publish _ _ _ _
          (fun=> release_ratio b) (fun n k => r ^+ k * b ^+ n)) => //.
- by move=> *; rewrite ler0n.
- by move=> *; apply: a0.
- by move=> n k; apply: cost_ge1.
- by move=> i h; apply: counter_ratio.
Qed.

End CounterTable.
