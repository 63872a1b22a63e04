(* Several statistics of one stream under one ledger: losses add up, so factors multiply. Shards of
   different users: a user loses what their own shard tells. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Panprivacy Require Import Model.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Ledger.

Variables (F : realFieldType) (U : eqType) (A B : program F U).
Variables (reads_A reads_B : pred U).

(* The rows of the users that a program reads: all of them, or those of a shard. *)
Definition rows_of (reads : pred U) (b : batch U) : batch U := [seq e <- b | reads e.1].

(* Both programs read one stream, each with coins of its own. One adversary sees both states and
   all answers, and chooses what is asked of one by what the other one said. *)
Definition both : program F U :=
  @Program F U [finType of state A * state B] (request A + request B) (answer A + answer B)
    (fun x => init x.1 * init x.2)
    (fun b x y => feed (rows_of reads_A b) x.1 y.1 * feed (rows_of reads_B b) x.2 y.2)
    (fun x y => announce x.1 y.1 * announce x.2 y.2)
    (fun q x a => match q, a with
                  | inl q, inl a => publish q x.1 a
                  | inr q, inr a => publish q x.2 a
                  | _, _ => 0
                  end).

Variables (adv : adversary both).

Definition first_of (s : state both) : state A := (s : state A * state B).1.
Definition second_of (s : state both) : state B := (s : state A * state B).2.

(* What a transcript of both says of A alone: the probability that A is in x, and does its part. *)
Fixpoint part_A (data : stream both) (tr : transcript both) (x : state A) : F :=
  match tr with
  | [::] => init x
  | o :: past =>
    match adv past, o with
    | Feed, Quiet => \sum_y part_A data past y * feed (rows_of reads_A (data past)) y x
    | Announce, Quiet => \sum_y part_A data past y * announce y x
    | Release (inl q), Answer (inl a) => part_A data past x * publish q x a
    | Release (inr _), Answer (inr _) => part_A data past x
    | Look, State s => part_A data past x * (x == first_of s)%:R
    | _, _ => 0
    end
  end.

Fixpoint part_B (data : stream both) (tr : transcript both) (x : state B) : F :=
  match tr with
  | [::] => init x
  | o :: past =>
    match adv past, o with
    | Feed, Quiet => \sum_y part_B data past y * feed (rows_of reads_B (data past)) y x
    | Announce, Quiet => \sum_y part_B data past y * announce y x
    | Release (inr q), Answer (inr a) => part_B data past x * publish q x a
    | Release (inl _), Answer (inl _) => part_B data past x
    | Look, State s => part_B data past x * (x == second_of s)%:R
    | _, _ => 0
    end
  end.

Lemma sum_both (f : state A -> F) (g : state B -> F) :
  \sum_(y : state A * state B) f y.1 * g y.2 = (\sum_x f x) * (\sum_x g x).
Proof.
rewrite -(pair_big xpredT xpredT (fun x y => f x * g y)) /= mulr_suml.
by apply: eq_bigr => x _; rewrite mulr_sumr.
Qed.

Lemma weight_both data tr (x : state A * state B) :
  weight adv data tr (x : state both) = part_A data tr x.1 * part_B data tr x.2.
Proof.
elim: tr x => [|o past IH] x //=.
case: (adv past) => [|[q|q]||]; case: o => [|[a|a]|s]; rewrite ?mulr0 ?mul0r //.
- rewrite -sum_both; apply: eq_bigr => y _; rewrite IH; exact: mulrACA.
- by rewrite IH mulrAC.
- by rewrite IH mulrA.
- rewrite -sum_both; apply: eq_bigr => y _; rewrite IH; exact: mulrACA.
- rewrite IH mulrACA; congr (_ * _); by rewrite -natrM mulnb.
Qed.

(* TOGETHER. If what is seen of A costs at most r, and what is seen of B at most q, then all that is
   seen costs at most r q, however requests to one depend on answers of the other. *)
Theorem statistics_of_one_ledger data data' tr (r q : F) : 0 <= r -> 0 <= q ->
  (forall x, 0 <= part_A data tr x) -> (forall x, 0 <= part_B data tr x) ->
  \sum_x part_A data tr x <= r * (\sum_x part_A data' tr x) ->
  \sum_x part_B data tr x <= q * (\sum_x part_B data' tr x) ->
  view adv data tr <= r * q * view adv data' tr.
Proof.
move=> r0 q0 a0 b0 ra qb.
have split d : view adv d tr = (\sum_x part_A d tr x) * (\sum_x part_B d tr x).
  by rewrite -sum_both; apply: eq_bigr => x _; apply: weight_both.
rewrite !split; apply: le_trans (ler_pmul _ _ ra qb) _; try exact: sumr_ge0.
by rewrite mulrACA.
Qed.

(* DISJOINT USERS. A user whose rows the other shard does not read loses what their own shard costs,
   though the adversary sees both, and asks one by what the other one said. *)
Theorem shards_of_disjoint_users u data data' tr (r : F) : 0 <= r -> ~~ reads_B u ->
  (forall past, user_adjacent u (data past) (data' past)) ->
  (forall x, 0 <= part_A data tr x) -> (forall x, 0 <= part_B data tr x) ->
  \sum_x part_A data tr x <= r * (\sum_x part_A data' tr x) ->
  view adv data tr <= r * view adv data' tr.
Proof.
move=> r0 away near a0 b0 ra; have same x : part_B data tr x = part_B data' tr x.
  elim: tr x {a0 b0 ra} => [|o past IH] x //=.
  case: (adv past) => [|[q|q]||]; case: o => [|[a|a]|s]; rewrite ?IH //; apply: eq_bigr => y _;
    rewrite IH //; congr (_ * feed _ _ _).
  have kept b : rows_of reads_B b = rows_of reads_B (others u b).
    rewrite /rows_of /others -filter_predI; apply: eq_filter => e /=.
    by case: (e.1 =P u) => [->|_]; rewrite ?andbT // (negPf away).
  by rewrite kept [RHS]kept near.
have := statistics_of_one_ledger r0 ler01 a0 b0 ra; rewrite mulr1; apply.
by rewrite mul1r (eq_bigr _ (fun x _ => same x)).
Qed.

End Ledger.
