(* A table of cells, one for each user or shared by some, and what one user can change in it.

   [table_ratio]: whoever bounds the ratio of two histories of one cell bounds that of the whole
   program. All other cells, and so all other users, shards and slices, are fixed in the proof:
   they have the same coins in both streams. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Panprivacy Require Import Model.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* Part 1: one cell, and two histories of it. *)

Section Cell.

Variables (F : realFieldType) (U : eqType) (X : finType).
Variable first : X -> F.                       (* the law that the cell begins with *)
Variable move : batch U -> X -> X -> F.        (* [move b x y]: its rows of a batch lead from x to y *)
Variable fresh : X -> X -> F.                  (* an announced intrusion *)

(* What happens to a cell under a stream and its neighbour. The batches may differ. A release has
   an answer whose probability depends on the cell, by some weight; a look shows its value. *)
Inductive event := Batch of batch U & batch U | Fresh | Weigh of (X -> F) | Show of X.

(* A history, the latest first; [side] says which of the two streams. The probability that all that
   was seen is seen, and that the cell is in x. *)
Fixpoint reach (side : bool) (h : seq event) (x : X) : F :=
  match h with
  | [::] => first x
  | Batch b b' :: past => \sum_y reach side past y * move (if side then b else b') y x
  | Fresh :: past => \sum_y reach side past y * fresh y x
  | Weigh K :: past => reach side past x * K x
  | Show c :: past => reach side past x * (x == c)%:R
  end.

Definition total side h : F := \sum_x reach side h x.

Definition is_show e := if e is Show _ then true else false.
Definition is_weigh e := if e is Weigh _ then true else false.
Definition is_fresh e := if e is Fresh then true else false.

(* Has the cell been seen since the last announcement? *)
Fixpoint shown (h : seq event) : bool :=
  match h with
  | [::] => false
  | Show _ :: _ => true
  | Fresh :: _ => false
  | _ :: past => shown past
  end.

Fixpoint fair (h : seq event) : bool :=
  match h with
  | [::] => true
  | e :: past => fair past && ~~ (is_show e && shown past)
  end.

(* All releases have weights of which [ok] holds. *)
Fixpoint weights_ok (ok : (X -> F) -> Prop) (h : seq event) : Prop :=
  match h with
  | [::] => True
  | Weigh K :: past => ok K /\ weights_ok ok past
  | _ :: past => weights_ok ok past
  end.

Hypothesis first0 : forall x, 0 <= first x.
Hypothesis move0 : forall b x y, 0 <= move b x y.
Hypothesis fresh0 : forall x y, 0 <= fresh x y.

Lemma reach_ge0 side h x :
  weights_ok (fun K => forall y, 0 <= K y) h -> 0 <= reach side h x.
Proof.
elim: h x => [|e h IH] x //=.
case: e => [b b'||K|c] ok.
- by apply: sumr_ge0 => y _; rewrite mulr_ge0 ?IH.
- by apply: sumr_ge0 => y _; rewrite mulr_ge0 ?IH.
- by case: ok => k0 ok; rewrite mulr_ge0 ?IH.
- by rewrite mulr_ge0 ?IH ?ler0n.
Qed.

Lemma weights_ok_sub (ok ok' : (X -> F) -> Prop) h :
  (forall K, ok K -> ok' K) -> weights_ok ok h -> weights_ok ok' h.
Proof.
move=> sub; elim: h => [|e h IH] //=; case: e => [b b'||K|c] //.
by case=> /sub ? /IH.
Qed.

End Cell.

(* Part 2: the table. *)

Section Table.

Variables (F : realFieldType) (U : eqType) (I X : finType).
Variables (request answer : Type).

Variable address : U -> option I.              (* a user has one cell, or none *)
Variable first : I -> X -> F.
Variable move : I -> batch U -> X -> X -> F.
Variable fresh : I -> X -> X -> F.
Notation table := {ffun I -> X}.
Variable publish : request -> table -> answer -> F.   (* any function of all cells, with noise *)

(* The rows of a batch that come to a cell. *)
Definition mine (i : I) (b : batch U) : batch U := [seq e <- b | address e.1 == Some i].

(* Cells begin, move and get fresh noise independently of each other. *)
Definition table_program : program F U :=
  @Program F U [finType of {ffun I -> X}] request answer
    (fun t => \prod_j first j (t j))
    (fun b t t' => \prod_j move j (mine j b) (t j) (t' j))
    (fun t t' => \prod_j fresh j (t j) (t' j))
    publish.

Hypothesis first0 : forall i x, 0 <= first i x.
Hypothesis move0 : forall i b x y, 0 <= move i b x y.
Hypothesis fresh0 : forall i x y, 0 <= fresh i x y.
Hypothesis publish0 : forall q t a, 0 <= publish q t a.

Lemma table_nonneg : nonneg_program table_program.
Proof.
by split=> [t|b t t'|t t'|q t a] //=; apply: prodr_ge0.
Qed.

(* The table t with x in cell i. *)
Definition put (t : table) (i : I) (x : X) : table := [ffun j => if j == i then x else t j].

Lemma put_same t i x : put t i x i = x. Proof. by rewrite ffunE eqxx. Qed.
Lemma put_other t i x j : j != i -> put t i x j = t j.
Proof. by move=> ne; rewrite ffunE (negPf ne). Qed.
Lemma put_put t i x y : put (put t i x) i y = put t i y.
Proof. by apply/ffunP=> j; rewrite !ffunE; case: (j == i). Qed.
Lemma put_id t i : put t i (t i) = t.
Proof. by apply/ffunP=> j; rewrite !ffunE; case: eqP => // ->. Qed.

(* To sum over tables is to sum over all other cells, and over this one. *)
Lemma sum_tables i x0 (G : table -> F) :
  \sum_(t : table) G t = \sum_(t : table | t i == x0) \sum_x G (put t i x).
Proof.
rewrite (partition_big (fun t : table => put t i x0) (fun t => t i == x0)) /=; last first.
  by move=> t _; rewrite put_same.
apply: eq_bigr => t /eqP ti.
rewrite (reindex_onto (fun x => put t i x) (fun s : table => s i)) /=; last first.
  by move=> s /eqP <-; rewrite put_put put_id.
by apply: eq_bigl => x; rewrite put_put put_same -ti put_id !eqxx.
Qed.

Lemma prod_put (t : table) i x (g : I -> X -> F) :
  \prod_j g j (put t i x j) = g i x * \prod_(j | j != i) g j (t j).
Proof.
rewrite (bigD1 i) //= put_same; congr (_ * _).
by apply: eq_bigr => j ne; rewrite put_other.
Qed.

Lemma prod_put2 (s t : table) i x (g : I -> X -> X -> F) :
  \prod_j g j (s j) (put t i x j) = g i (s i) x * \prod_(j | j != i) g j (s j) (t j).
Proof.
rewrite (bigD1 i) //= put_same; congr (_ * _).
by apply: eq_bigr => j ne; rewrite put_other.
Qed.

Section OneUser.

Variables (adv : adversary table_program) (data data' : stream table_program).
Variables (u : U) (i : I) (x0 : X).
Hypothesis lives : address u = Some i.
Hypothesis neighbours : forall past, user_adjacent u (data past) (data' past).

(* Rows of other cells are the same in both streams. *)
Lemma mine_others past j : j != i -> mine j (data past) = mine j (data' past).
Proof.
move=> ne.
have same b : mine j b = mine j (others u b).
  rewrite /mine /others -filter_predI; apply: eq_filter => e /=.
  case: (e.1 =P u) => [->|_]; last by rewrite andbT.
  by rewrite lives andbF; apply/negbTE/eqP=> [[ij]]; rewrite ij eqxx in ne.
by rewrite same [in RHS]same neighbours.
Qed.

Definition state_cell (s : state table_program) : X := (s : table) i.

(* What happens to the user's cell while all others go through the tables [path], the latest first. *)
Fixpoint cell_history (path : seq table) (tr : transcript table_program) : seq (event F U X) :=
  match path, tr with
  | t :: path', o :: past =>
    match adv past, o with
    | Feed, Quiet =>
        Batch F X (mine i (data past)) (mine i (data' past)) :: cell_history path' past
    | Announce, Quiet => Fresh F U X :: cell_history path' past
    | Release q, Answer a => Weigh U (fun x => publish q (put t i x) a) :: cell_history path' past
    | Look, State s => Show F U (state_cell s) :: cell_history path' past
    | _, _ => cell_history path' past
    end
  | _, _ => [::]
  end.

(* The probability of all that happens to the others, the same in both streams. *)
Fixpoint rest (path : seq table) (tr : transcript table_program) : F :=
  match path, tr with
  | [:: t], [::] => \prod_(j | j != i) first j (t j)
  | t :: (s :: _) as path', o :: past =>
    rest path' past *
    match adv past, o with
    | Feed, Quiet => \prod_(j | j != i) move j (mine j (data past)) (s j) (t j)
    | Announce, Quiet => \prod_(j | j != i) fresh j (s j) (t j)
    | Release q, Answer a => (s == t)%:R
    | Look, State v => (s == t)%:R * (t == put (v : table) i x0)%:R
    | _, _ => 0
    end
  | _, _ => 0
  end.

Fixpoint paths (n : nat) : seq (seq table) :=
  if n is n'.+1 then [seq t :: p | t <- enum [pred t : table | t i == x0], p <- paths n'] else [:: [::]].

Lemma sum_paths n (G : seq table -> F) :
  \sum_(p <- paths n.+1) G p = \sum_(t : table | t i == x0) \sum_(p <- paths n) G (t :: p).
Proof. by rewrite /= big_allpairs_dep big_enum. Qed.

Notation fate side path tr := (reach (first i) (move i) (fresh i) side (cell_history path tr)).

Definition streamed (side : bool) := if side then data else data'.

(* One step in which all cells move by laws of their own. *)
Lemma step_is_mixture side past (t : table) x (g : I -> X -> X -> F) (own : X -> X -> F) :
  (forall (s : table) y, s i = x0 -> weight adv (streamed side) past (put s i y)
    = \sum_(p <- paths (size past)) rest (s :: p) past * fate side (s :: p) past y) ->
  \sum_(s : table) weight adv (streamed side) past s * (own (s i) x * \prod_(j | j != i) g j (s j) (t j))
  = \sum_(s : table | s i == x0) \sum_(p <- paths (size past))
      rest (s :: p) past * (\prod_(j | j != i) g j (s j) (t j)) *
      \sum_y fate side (s :: p) past y * own y x.
Proof.
move=> IH; rewrite (sum_tables i x0); apply: eq_bigr => s /eqP si.
transitivity (\sum_y \sum_(p <- paths (size past)) rest (s :: p) past *
   (\prod_(j | j != i) g j (s j) (t j)) * (fate side (s :: p) past y * own y x)).
  apply: eq_bigr => y _; rewrite IH // put_same.
  rewrite (eq_bigr (fun j => g j (s j) (t j))) => [|j ne]; last by rewrite put_other.
  rewrite mulr_suml; apply: eq_bigr => p _.
  by rewrite -!mulrA; congr (_ * _); rewrite mulrA mulrC.
by rewrite exchange_big /=; apply: eq_bigr => p _; rewrite mulr_sumr.
Qed.

(* The program is a mixture, over what happens to the others, of histories of the user's cell. *)
Lemma weight_is_mixture side tr (t : table) x : t i = x0 ->
  weight adv (streamed side) tr (put t i x)
  = \sum_(p <- paths (size tr)) rest (t :: p) tr * fate side (t :: p) tr x.
Proof.
elim: tr t x => [|o past IH] t x ti.
  by rewrite /= big_seq1 prod_put mulrC.
have IH' (s : table) y : s i = x0 -> weight adv (streamed side) past (put s i y)
    = \sum_(p <- paths (size past)) rest (s :: p) past * fate side (s :: p) past y.
  by move=> si; apply: IH.
rewrite [size (o :: past)]/= sum_paths.
rewrite [weight _ _ _ _]/=.
case adve: (adv past) => [|q||]; case: o => [|a|v];
  try by (rewrite big1 // => s _; rewrite big1 // => p _; rewrite /= adve mulr0 mul0r).
- transitivity (\sum_(s : table) weight adv (streamed side) past s *
     (move i (mine i (streamed side past)) (s i) x *
      \prod_(j | j != i) move j (mine j (data past)) (s j) (t j))).
    apply: eq_bigr => s _; rewrite /= (@prod_put2 s t i x (fun j => move j (mine j (streamed side past)))); congr (_ * (_ * _)).
    by apply: eq_bigr => j ne; case: (side) => //=; rewrite mine_others.
  rewrite (@step_is_mixture side past t x (fun j => move j (mine j (data past)))
    (move i (mine i (streamed side past))) IH').
  by apply: eq_bigr => s _; apply: eq_bigr => p _; rewrite /= adve /=; case: (side).
- rewrite IH //; transitivity (\sum_(s : table | s i == x0) \sum_(p <- paths (size past))
     rest (s :: p) past * (s == t)%:R * (fate side (s :: p) past x * publish q (put t i x) a)).
    rewrite (bigD1 t) ?ti //= [X in _ + X]big1 ?addr0 => [|s /andP [_ ne]].
      by rewrite mulr_suml; apply: eq_bigr => p _; rewrite eqxx mulr1 mulrA.
    by rewrite big1 // => p _; rewrite (negPf ne) mulr0 mul0r.
  by apply: eq_bigr => s _; apply: eq_bigr => p _; rewrite /= adve.
- transitivity (\sum_(s : table) weight adv (streamed side) past s *
     (fresh i (s i) x * \prod_(j | j != i) fresh j (s j) (t j))).
    by apply: eq_bigr => s _; rewrite /= (@prod_put2 s t i x fresh).
  rewrite (@step_is_mixture side past t x fresh (fresh i) IH').
  by apply: eq_bigr => s _; apply: eq_bigr => p _; rewrite /= adve.
- rewrite IH //; transitivity (\sum_(s : table | s i == x0) \sum_(p <- paths (size past))
     rest (s :: p) past * (s == t)%:R * (fate side (s :: p) past x *
       ((x == state_cell v)%:R * (t == put (v : table) i x0)%:R))).
    rewrite (bigD1 t) ?ti //= [X in _ + X]big1 ?addr0 => [|s /andP [_ ne]].
      rewrite mulr_suml; apply: eq_bigr => p _; rewrite eqxx mulr1 -!mulrA; congr (_ * (_ * _)).
      have -> : (put t i x == v :> table) = (x == state_cell v) && (t == put (v : table) i x0).
        apply/eqP/andP => [<-|[/eqP -> /eqP ->]]; last by rewrite put_put put_id.
        by rewrite /state_cell put_same put_put -ti put_id !eqxx.
      by rewrite -natrM mulnb.
    by rewrite big1 // => p _; rewrite (negPf ne) mulr0 mul0r.
  apply: eq_bigr => s _; apply: eq_bigr => p _; rewrite /= adve /=.
  rewrite -!mulrA; congr (_ * _); case: (s =P t) => [->|_]; last by rewrite !mul0r.
  by rewrite !mul1r [in RHS]mulrC -mulrA.
Qed.

Lemma rest_ge0 path tr : 0 <= rest path tr.
Proof.
elim: tr path => [|o past IH] [|t [|s p]]; rewrite //=; first by apply: prodr_ge0.
apply: mulr_ge0; first exact: (IH (s :: p)).
case: (adv past) => [|q||]; case: o => [|a|v] //; rewrite ?mulr_ge0 ?ler0n //; exact: prodr_ge0.
Qed.

Notation whole side path tr := (total (first i) (move i) (fresh i) side (cell_history path tr)).

Lemma view_is_mixture side tr :
  view adv (streamed side) tr
  = \sum_(p <- paths (size tr).+1) rest p tr * whole side p tr.
Proof.
rewrite sum_paths /view (sum_tables i x0); apply: eq_bigr => t /eqP ti.
rewrite (eq_bigr _ (fun x _ => weight_is_mixture side tr x ti)) exchange_big /=.
by apply: eq_bigr => p _; rewrite mulr_sumr.
Qed.

Lemma ratio_of_cells (bound : F) tr :
  (forall p, size p = (size tr).+1 -> rest p tr != 0 -> whole true p tr <= bound * whole false p tr) ->
  view adv data tr <= bound * view adv data' tr.
Proof.
move=> cells; rewrite (view_is_mixture true) (view_is_mixture false) mulr_sumr.
have : forall p, p \in paths (size tr).+1 -> size p = (size tr).+1.
  move: (size tr).+1 => n; elim: n => [|n IH] p; first by rewrite inE => /eqP ->.
  by case/allpairsP=> [[t q] [_ /IH sq ->]]; rewrite /= sq.
move: (paths _) => s sizes; rewrite !big_seq; apply: ler_sum => p /sizes /cells ratio.
rewrite mulrCA; case: (rest p tr =P 0) => [->|/eqP /ratio]; first by rewrite !mul0r.
by apply: ler_wpmul2l; apply: rest_ge0.
Qed.

(* What the transcript says of the history of the cell. *)
Lemma shown_exposed path tr : size path = (size tr).+1 -> rest path tr != 0 ->
  shown (cell_history path tr) = exposed adv tr.
Proof.
elim: tr path => [|o past IH] [|t [|s p]] // [sz]; have {}IH := IH (s :: p) (congr1 S sz).
rewrite [rest _ _]/= mulf_eq0 negb_or => /andP [/IH {}IH].
rewrite [exposed _ _]/= [cell_history _ _]/=.
by case: (adv past) => [|q||]; case: o => [|a|v] //; rewrite ?eqxx.
Qed.

Lemma counts path tr : size path = (size tr).+1 -> rest path tr != 0 ->
  count (@is_weigh F U X) (cell_history path tr) = releases tr /\
  count (@is_show F U X) (cell_history path tr) = looks tr.
Proof.
rewrite /releases /looks.
elim: tr path => [|o past IH] [|t [|s p]] // [sz]; have {}IH := IH (s :: p) (congr1 S sz).
rewrite [rest _ _]/= mulf_eq0 negb_or => /andP [/IH [{}IH IH']].
rewrite [cell_history _ _]/= ![count _ (o :: past)]/= -IH -IH'.
by case: (adv past) => [|q||]; case: o => [|a|v] //; rewrite ?eqxx.
Qed.

Lemma fair_covered path tr : size path = (size tr).+1 -> rest path tr != 0 ->
  covered adv tr -> fair (cell_history path tr).
Proof.
elim: tr path => [|o past IH] [|t [|s p]] // [sz]; have {}IH := IH (s :: p) (congr1 S sz).
rewrite [rest _ _]/= mulf_eq0 negb_or => /andP [r0 ne] /andP [c e]; move: (IH r0 c).
have same : shown (cell_history (s :: p) past) = exposed adv past.
  by apply: shown_exposed => //; rewrite /= sz.
rewrite [cell_history _ (o :: _)]/= => fh; move: ne e; rewrite -same.
by case: (adv past) => [|q||]; case: o => [|a|v] //=; rewrite ?eqxx ?andbT //= => _ e; apply/andP.
Qed.

Lemma weights_ok_history (ok : (X -> F) -> Prop) path tr :
  (forall q (t : table) a, ok (fun x => publish q (put t i x) a)) ->
  weights_ok ok (cell_history path tr).
Proof.
move=> pub; elim: tr path => [|o past IH] [|t p] //=.
by case: (adv past) => [|q||]; case: o => [|a|v] //=.
Qed.

End OneUser.

(* A transcript tells as much as the history of one cell, which has as many releases and looks. *)
Lemma by_cells (ok : I -> (X -> F) -> Prop) (bound : F) (adv : adversary table_program) data data' tr :
  user_neighbours data data' -> 1 <= bound ->
  (forall i q (t : table) a, ok i (fun x => publish q (put t i x) a)) ->
  (forall i h, (covered adv tr -> fair h) -> weights_ok (ok i) h ->
     count (@is_weigh F U X) h = releases tr -> count (@is_show F U X) h = looks tr ->
     shown h = exposed adv tr ->
     total (first i) (move i) (fresh i) true h <= bound * total (first i) (move i) (fresh i) false h) ->
  view adv data tr <= bound * view adv data' tr.
Proof.
move=> [u near] ge1 pub cells.
have vw0 d : 0 <= view adv d tr by apply/view_ge0/table_nonneg.
case home: (address u) => [i|]; last first.
  have same : forall t, weight adv data tr t = weight adv data' tr t.
    elim: tr {cells vw0} => [|o past IH] t //=; case: (adv past) => [|q||]; case: o => [|a|v] //=;
      rewrite ?IH //; apply: eq_bigr => s _; rewrite IH //; congr (_ * _).
    apply: eq_bigr => j _; congr (move _ _ _ _).
    have drop b : mine j b = mine j (others u b).
      rewrite /mine /others -filter_predI; apply: eq_filter => e /=.
      by case: (e.1 =P u) => [->|_]; rewrite ?andbT // home.
    by rewrite drop [in RHS]drop near.
  rewrite /view (eq_bigr _ (fun t _ => same t)).
  by rewrite -[X in X <= _]mul1r ler_wpmul2r //; apply: vw0.
case: (pickP (fun x : X => true)) => [x0 _|none]; last first.
  have no (t : table) : False by have := none (t i).
  by rewrite /view !big1 ?mulr0 // => t; case: (no t).
apply: (@ratio_of_cells adv data data' u i x0 home near) => p sz rest0.
have [weighed looked] := counts data' sz rest0.
apply: cells => //; first exact: (fair_covered data' sz rest0).
- exact: weights_ok_history.
- exact: (shown_exposed data' sz rest0).
Qed.

(* Whoever bounds what one cell tells, whatever batches it met in two streams, bounds what the
   program tells. [ok] is what is known of releases: how far one cell moves them. [bound] may depend
   on the number of releases, and on the number of epochs: one look is paid for in each. *)
Theorem table_ratio (ok : I -> (X -> F) -> Prop) (bound : nat -> nat -> F) :
  (forall n k, 1 <= bound n k) ->
  (forall i q (t : table) a, ok i (fun x => publish q (put t i x) a)) ->
  (forall i h, fair h -> weights_ok (ok i) h ->
     total (first i) (move i) (fresh i) true h
     <= bound (count (@is_weigh F U X) h) (count (@is_show F U X) h + ~~ shown h)%N *
        total (first i) (move i) (fresh i) false h) ->
  pan_private (@user_neighbours F U table_program)
    (fun adv tr => bound (releases tr) (epochs adv tr)).
Proof.
move=> ge1 pub cells adv data data' tr near cov.
apply: (by_cells near (ge1 _ _) pub) => i h fh wok <- looked same.
by rewrite /epochs -looked -same; apply: cells => //; apply: fh.
Qed.

End Table.
