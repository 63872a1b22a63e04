(* The joint loss of bits and releases is exact: a table of one bit, one user and truthful-or-not
   answers lose all of it. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring.
From Panprivacy Require Import Ring Model Table Bits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Attained.

Variables (F : realFieldType) (p b : F) (n : nat).
Hypotheses (p_half : 1 - p <= p) (p1 : p < 1) (b1 : 1 <= b).
Add Ring Fring : (field_is_ring F).

(* A release is randomised response: the bit as it is with 1/(1+b), the other one with b/(1+b). Which
   of the two is likelier does not matter to what is lost. *)
Definition respond (_ : unit) (t : {ffun unit -> bool}) (a : bool) : F :=
  (if t tt == a then 1 else b) / (1 + b).

(* The presence bit of one user, who draws from p as they come and from 1 - p as they leave. *)
Definition one_bit : program F unit_eqType :=
  presence_bits Some respond p (fun=> last_row_decides p).

Notation seen := (seen one_bit).
Notation table := {ffun unit_finType -> bool_finType}.

(* All releases, one batch, and a look. *)
Definition late_look : adversary one_bit := fun past =>
  if (size past < n)%N then @Release _ _ one_bit tt
  else if size past == n then Feed one_bit else Look one_bit.

(* The user comes after the releases, or never. *)
Definition comes_late : stream one_bit := fun past => if size past == n then [:: (tt, 1)] else [::].
Definition never : stream one_bit := fun=> [::].

Definition all_set : table := [ffun=> true].
Definition answers (k : nat) : transcript one_bit := nseq k (@Answer _ _ one_bit true).
Definition saw : transcript one_bit := [:: @State _ _ one_bit all_set, Quiet one_bit & answers n].

Lemma den_gt0 : 0 < 1 + b.
Proof. by apply: ltr_paddr ltr01; apply: le_trans ler01 b1. Qed.

Lemma respond_gt0 q t a : 0 < respond q t a.
Proof.
rewrite divr_gt0 ?den_gt0 //; case: ifP => _; rewrite ?ltr01 //; exact: lt_le_trans ltr01 b1.
Qed.

Lemma respond_law q t : \sum_a respond q t a = 1.
Proof.
have d0 : 1 + b != 0 by rewrite gt_eqF ?den_gt0.
by rewrite big_bool /respond; case: (t tt); rewrite /= -mulrDl ?[b + 1]addrC divff.
Qed.

Lemma respond_ratio (i : unit) q (t : table) a x y :
  respond q (put t i x) a <= b * respond q (put t i y) a.
Proof.
case: i; rewrite /respond !put_same mulrA; apply: ler_wpmul2r; first by rewrite invr_ge0 ltW ?den_gt0.
have b0 : 0 <= b by apply: le_trans ler01 b1.
case: (x == a); case: (y == a); rewrite ?mulr1 //.
- by apply: mulr_ege1.
- by apply: ler_pemulr.
Qed.

Lemma prod_unit (G : unit -> F) : \prod_j G j = G tt.
Proof. by rewrite (bigD1 tt) //= big1 ?mulr1 //; case. Qed.

Lemma sum_table (G : table -> F) : \sum_t G t = G [ffun=> true] + G [ffun=> false].
Proof.
rewrite (reindex (fun x : bool => [ffun=> x] : table)) /= ?big_bool //.
exists (fun t : table => t tt) => [x _|t _]; first by rewrite ffunE.
by apply/ffunP; case; rewrite ffunE.
Qed.

Lemma weight_answers data k (t : table) : (k <= n)%N ->
  weight late_look data (answers k) (t : state one_bit)
  = coin (1 - p) (t tt) * respond tt t true ^+ k.
Proof.
elim: k => [|k IH] kn; first by rewrite /= prod_unit expr0 mulr1.
rewrite /answers /= /late_look size_nseq kn /= -/late_look -/(answers k) IH ?(ltnW kn) //.
by rewrite exprSr mulrA.
Qed.

Lemma view_saw data :
  view late_look data saw
  = \sum_(s : table) coin (1 - p) (s tt) * respond tt s true ^+ n
      * bit_move (last_row_decides p) (mine Some tt (data (answers n))) (s tt) true.
Proof.
have steps : late_look (answers n) = Feed one_bit /\
             late_look (Quiet one_bit :: answers n) = Look one_bit.
  by rewrite /late_look /= size_nseq ltnn eqxx ltnNge leqnSn /= gtn_eqF.
case: steps => feed look.
rewrite /view (sum_table (weight late_look data saw)) /= look !eqxx mulr1.
rewrite (_ : ([ffun=> false] == all_set :> table) = false) ?mulr0 ?addr0; last first.
  by apply/eqP => /ffunP /(_ tt); rewrite !ffunE.
rewrite feed; apply: eq_bigr => s _.
by rewrite weight_answers // prod_unit ffunE.
Qed.

(* THE JOINT LOSS IS ATTAINED. A user who comes after n releases and is looked at loses all that
   [bits_and_releases] claims: nothing less can be charged. *)
Theorem joint_loss_is_attained :
  [/\ user_neighbours comes_late never, covered late_look saw, releases saw = n,
      0 < view late_look never saw
    & view late_look comes_late saw
      = p / (1 - p) * (1 - p + p * b ^+ n) * view late_look never saw].
Proof.
have p'0 : 0 < 1 - p by rewrite subr_gt0.
have pn : 1 - p != 0 by rewrite gt_eqF.
have cov k : (k <= n)%N -> covered late_look (answers k) && ~~ exposed late_look (answers k).
  elim: k => [|k IH] kn //=; case/andP: (IH (ltnW kn)) => -> /negPf e.
  by rewrite /late_look size_nseq kn /= -/late_look e.
have counts k : releases (answers k) = k by elim: k => [|k IH] //=; rewrite /releases /= -/(releases _) IH.
pose w := (1 + b)^-1.
have never_view : view late_look never saw = (1 - p) * w ^+ n.
  rewrite view_saw sum_table /bit_move /mine /= !ffunE /= mulr1 mulr0 addr0 /respond ffunE eqxx.
  by rewrite div1r.
have late_view : view late_look comes_late saw = p * ((1 - p) * w ^+ n + p * (b * w) ^+ n).
  rewrite view_saw sum_table /comes_late size_nseq eqxx /bit_move /mine /= !ffunE /= /respond !ffunE /=.
  by rewrite div1r -/w; move: (w ^+ n) ((b * w) ^+ n) => u v; fring F.
split=> //.
- by exists tt => past; rewrite /user_adjacent /comes_late /never; case: ifP.
- case/andP: (cov n (leqnn n)) => c /negPf e; rewrite /= c /=.
  by rewrite {1}/late_look size_nseq ltnn eqxx /= e.
- by rewrite /saw /releases /= -/(releases _) counts.
- by rewrite never_view mulr_gt0 // exprn_gt0 // invr_gt0 den_gt0.
rewrite never_view late_view exprMn.
have -> : p / (1 - p) * (1 - p + p * b ^+ n) * ((1 - p) * w ^+ n)
          = p * (1 - p + p * b ^+ n) * w ^+ n * ((1 - p) / (1 - p)).
  by move: ((1 - p)^-1) (w ^+ n) (b ^+ n) => i u v; fring F.
by rewrite divff // mulr1; move: (w ^+ n) (b ^+ n) => u v; fring F.
Qed.

End Attained.
