(* The model: streams, neighbours, programs that may be seized, and what an adversary sees.

   It is the pan-privacy of Dwork, Naor, Pitassi, Rothblum and Yekhanin, "Pan-private streaming
   algorithms" (2010): a program reads a stream, and somebody sees its internal state at a moment
   of their choice, and all outputs. Factors r >= 1 of an ordered field stand for e^epsilon.

   A law is a function to the field, so weights of answers may have infinite support. A proof
   compares the weights of one view under two streams; it never sums over answers. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Streams.

Variable U : eqType.                                             (* users *)

(* An update says that a user did something: who, and by how much (the delta). *)
Definition update : Type := U * int.
Definition batch := seq (U * int).

(* User level: two batches are neighbours if they agree in the updates of everybody but [u].
   So all or some updates of [u] may be added, removed or changed. *)
Definition others (u : U) (b : batch) : batch := [seq e <- b | e.1 != u].
Definition user_adjacent (u : U) (b b' : batch) : Prop := others u b = others u b'.

(* Event level: one update is added or removed. *)
Definition event_adjacent (b b' : batch) : Prop :=
  exists e before after, (b = before ++ e :: after /\ b' = before ++ after)
                      \/ (b' = before ++ e :: after /\ b = before ++ after).

Lemma user_adjacent_refl u b : user_adjacent u b b.
Proof. by []. Qed.

Lemma user_adjacent_sym u b b' : user_adjacent u b b' -> user_adjacent u b' b.
Proof. by rewrite /user_adjacent => ->. Qed.

(* A batch that is sent again, a retry, is one more batch of the same updates: streams that differ
   in updates of [u] differ in updates of [u] if any of their batches are repeated. *)
Lemma user_adjacent_cat u b b' c c' :
  user_adjacent u b b' -> user_adjacent u c c' -> user_adjacent u (b ++ c) (b' ++ c').
Proof. by rewrite /user_adjacent /others !filter_cat => -> ->. Qed.

(* One event is an event of its user, so an event-level neighbour is a user-level neighbour. *)
Lemma event_is_of_user b b' : event_adjacent b b' -> exists u, user_adjacent u b b'.
Proof.
case=> e [pre [post H]]; exists e.1; rewrite /user_adjacent /others.
by case: H => [] [-> ->]; rewrite !filter_cat /= eqxx.
Qed.

End Streams.

Section Programs.

Variable F : realFieldType.

Section Laws.
Variable T : finType.

(* A probability law on a finite set. *)
Definition is_law (f : T -> F) : Prop := (forall x, 0 <= f x) /\ \sum_x f x = 1.

(* No value is more than r times as likely as another one. *)
Definition bounded_ratio (r : F) (f : T -> F) : Prop := forall x y, f x <= r * f y.
End Laws.

(* A program is a state machine with coins. Its coins appear as the laws of what it does next. *)
Record program (U : eqType) := Program {
  state : finType;                       (* everything that is kept between two steps *)
  request : Type;                        (* what may be asked *)
  answer : Type;                         (* what may be answered: whole numbers, for instance *)
  init : state -> F;                     (* the law of the first state *)
  feed : batch U -> state -> state -> F; (* [feed b x y]: from x, a batch leads to y *)
  announce : state -> state -> F;        (* an intrusion is announced: fresh noise *)
  publish : request -> state -> answer -> F   (* [publish q x a]: in state x, q is answered by a *)
}.

(* Weights are not negative. Only this part of being a law matters to ratios. *)
Definition nonneg_program U (P : program U) : Prop :=
  [/\ forall x : state P, 0 <= init x,
      forall b (x y : state P), 0 <= feed b x y,
      forall x y : state P, 0 <= announce x y
    & forall q (x : state P) a, 0 <= publish q x a].

Section Views.

Variables (U : eqType) (P : program U).

(* What happens next. All of these moments are public. *)
Inductive action := Feed | Release of request P | Announce | Look.

(* What the adversary sees of it: nothing, an answer, or the whole state. *)
Inductive seen := Quiet | Answer of answer P | State of state P.

(* A transcript, the latest first. *)
Definition transcript := seq seen.

(* The adversary chooses what happens next from all that was seen: moments of releases, intrusions
   and announcements, and what is asked. The batches may depend on it as well. *)
Definition adversary := transcript -> action.
Definition stream := transcript -> batch U.

(* [weight adv data tr x]: the probability that [tr] is seen and that the program is in x then. *)
Fixpoint weight (adv : adversary) (data : stream) (tr : transcript) (x : state P) : F :=
  match tr with
  | [::] => init x
  | o :: past =>
    match adv past, o with
    | Feed, Quiet => \sum_y weight adv data past y * feed (data past) y x
    | Announce, Quiet => \sum_y weight adv data past y * announce y x
    | Release q, Answer a => weight adv data past x * publish q x a
    | Look, State s => weight adv data past x * (x == s)%:R
    | _, _ => 0
    end
  end.

(* The probability that an adversary sees this transcript. *)
Definition view (adv : adversary) (data : stream) (tr : transcript) : F :=
  \sum_x weight adv data tr x.

Definition is_state (o : seen) : bool := if o is State _ then true else false.
Definition is_answer (o : seen) : bool := if o is Answer _ then true else false.

(* Number of intrusions, and of releases, in a transcript. *)
Definition looks (tr : transcript) : nat := count is_state tr.
Definition releases (tr : transcript) : nat := count is_answer tr.

(* Has the state been seen since the last announced intrusion? *)
Fixpoint exposed (adv : adversary) (tr : transcript) : bool :=
  match tr with
  | [::] => false
  | o :: past =>
    match adv past, o with
    | Look, State _ => true
    | Announce, _ => false
    | _, _ => exposed adv past
    end
  end.

(* Number of looks, with one in the present epoch if there was none. Without announcements: 1. *)
Definition epochs (adv : adversary) (tr : transcript) : nat := (looks tr + ~~ exposed adv tr)%N.

(* At most one look in each epoch, the time between two announcements. Without any announcement:
   at most one look. *)
Fixpoint covered (adv : adversary) (tr : transcript) : bool :=
  match tr with
  | [::] => true
  | o :: past => covered adv past && ~~ (is_state o && exposed adv past)
  end.

(* The guarantee. [bound] may depend on the transcript: on the number of looks and of releases.
   As [data] and [data'] may change places, it bounds the ratio from both sides. *)
Definition pan_private (adjacent : stream -> stream -> Prop) (bound : adversary -> transcript -> F) : Prop :=
  forall adv data data' tr, adjacent data data' -> covered adv tr ->
    view adv data tr <= bound adv tr * view adv data' tr.

(* Streams are neighbours if they are whatever was seen. *)
Definition user_neighbours (data data' : stream) : Prop :=
  exists u, forall past, user_adjacent u (data past) (data' past).

(* One event, in the batch after one number of observations. *)
Definition event_neighbours (data data' : stream) : Prop :=
  exists n, forall past, if size past == n then event_adjacent (data past) (data' past)
                         else data past = data' past.

Hypothesis nonneg : nonneg_program P.

Lemma weight_ge0 adv data tr x : 0 <= weight adv data tr x.
Proof.
case: nonneg => i0 f0 a0 p0.
elim: tr x => [|o past IH] x //=.
case: (adv past) => [|q||]; case: o => [|a|s] //.
- by apply: sumr_ge0 => y _; rewrite mulr_ge0.
- by rewrite mulr_ge0.
- by apply: sumr_ge0 => y _; rewrite mulr_ge0.
- by rewrite mulr_ge0 // ler0n.
Qed.

Lemma view_ge0 adv data tr : 0 <= view adv data tr.
Proof. by apply: sumr_ge0 => x _; apply: weight_ge0. Qed.

End Views.

(* RETRIES. A batch that is sent again is one more batch of the same updates. So a program that is
   pan-private between users stays so, at the same cost, if any batches are repeated. *)
Section Retries.
Variables (U : eqType) (P : program U).

Definition repeated (times : transcript P -> nat) (data : stream P) : stream P :=
  fun past => flatten (nseq (times past).+1 (data past)).

Theorem retries (bound : adversary P -> transcript P -> F) :
  pan_private (@user_neighbours U P) bound ->
  forall times adv data data' tr, user_neighbours data data' -> covered adv tr ->
  view adv (repeated times data) tr <= bound adv tr * view adv (repeated times data') tr.
Proof.
move=> private times adv data data' tr [u near] cov; apply: private => //; exists u => past.
rewrite /repeated; elim: (times past) => [|n IH] /=; first by rewrite !cats0; apply: near.
exact: user_adjacent_cat (near past) IH.
Qed.
End Retries.

End Programs.
