# SPDX-License-Identifier: BSD-3-Clause
"""Seeded faults of the engine, each with the test that must find it. run.py puts them in.

mutant(name, what is broken, test, (file, old text, new text), ...): the old text is in the file exactly once. The
test is "VARIANT module/test_program" or "VARIANT protocol test_file.py::test_name", one that "make test" runs in that
variant. Fault points are compiled into asan and tsan alone. A change that no test could ever tell from the original
doesn't belong here.
"""
import collections

Mutant = collections.namedtuple("Mutant", "name says test edits")
MUTANTS = []


def mutant(name, says, test, *edits):
    MUTANTS.append(Mutant(name, says, test, edits))


# ---- base ----------------------------------------------------------------------------------------

mutant("hist-quantile-rank", "A quantile takes the value below the one of its rank.",
       "asan base/test_hist",
       ("base/hist.c", "\tif ((double)rank < exact || rank == 0)\n\t\trank++;", "\tif (rank == 0)\n\t\trank++;"))

mutant("hist-merge-max", "A merged histogram forgets the largest value of the other one.",
       "asan base/test_hist",
       ("base/hist.c", "\tif (cell_load(&from->max) > cell_load(&into->max))",
        "\tif (cell_load(&from->max) < cell_load(&into->max))"))

mutant("region-decommit-keeps", "Memory that an area gives back stays, with what was in it.",
       "asan base/test_region",
       ("base/region.c", "\t\tmem_decommit(region->base + area->offset, area->usable);", "\t\tarea->usable += 0;"))

mutant("region-commit-beyond", "An area gets more than its most, which is the next one's.",
       "asan base/test_region",
       ("base/region.c",
        "\tif (wanted > area->most)\n\t\treturn FS_ERANGE;",
        "\tif (wanted > 2 * area->most)\n\t\treturn FS_ERANGE;"))

# ---- classifier ----------------------------------------------------------------------------------

mutant("label-after-update", "Reads after an update count for the sample of the old value.",
       "asan classifier/test_sampler",
       ("classifier/sampler.c",
        "\tif (!entry->ended && now_ms < entry->count_until_ms",
        "\tif (now_ms < entry->count_until_ms"))

mutant("label-refill-ends", "The refill after a miss ends the counting, as if it were an update.",
       "asan classifier/test_sampler",
       ("classifier/sampler.c", "\t\tif (!entry->missed)\n\t\t\tentry->ended = true;", "\t\tentry->ended = true;"))

mutant("sample-not-uniform", "Of the accesses in a window always the last one is the sample.",
       "asan classifier/test_sampler",
       ("classifier/sampler.c", "\tif (rng_below(&stripe->rng, entry->accesses) == 0)\n", "\tif (true)\n"))

mutant("feature-max-gap", "The longest gap of an object is its shortest.",
       "asan classifier/test_features",
       ("classifier/features.c", "\tif (code > gaps->max)", "\tif (code < gaps->max)"))

mutant("feature-mean-gap", "The gap to the first read is left out of the mean.",
       "asan classifier/test_features",
       ("classifier/features.c", "mean_encode(mean_ms + (gap_ms - mean_ms) / (float)(int)count)",
        "mean_encode(mean_ms + (count == 1 ? 0 : gap_ms - mean_ms) / (float)(int)count)"))

mutant("label-threshold", "An object with just as many reads as the threshold counts as not flashy.",
       "asan classifier/test_model",
       ("classifier/model.c", "samples[i].reads >= threshold ? 1 : -1;", "samples[i].reads > threshold ? 1 : -1;"))

mutant("guard-accepts-all", "A model that gets fewer hits than a rule is used.",
       "asan classifier/test_guard",
       ("classifier/guard.c", "\tif (judgement->model_hits >= hits)\n", "\tif (judgement->model_hits >= hits / 2)\n"))

mutant("guard-forgets-second-hit", "A model that gets fewer hits than second-hit is used.",
       "asan classifier/test_guard",
       ("classifier/guard.c", "loses_to(judgement, judgement->second_hit_hits, \"second-hit\", reason))",
        "loses_to(judgement, judgement->freq_hits, \"second-hit\", reason))"))

mutant("guard-counts-objects", "Model and rules are compared as if all objects were of one size.",
       "asan classifier/test_guard",
       ("classifier/guard.c", "\t\t\t\t\t     .bytes = samples[i].state.record_bytes,\n",
        "\t\t\t\t\t     .bytes = 100,\n"))

mutant("model-not-monotone", "A higher decision may mean less, as chance had it.",
       "asan classifier/test_model",
       ("classifier/model.c", "\tmake_monotone(model->step_worth, CLF_STEPS);\n", ""))

mutant("model-other-unit", "The model's worth is in accesses, and the count's is not.",
       "asan classifier/test_model",
       ("classifier/model.c", "log2(model->step_worth[s] * (counts > 0 ? counts : 1) / (accesses > 0 ? accesses : 1));",
        "log2(model->step_worth[s]);"))

mutant("model-not-given-up", "A model that loses stays in use.",
       "asan classifier/test_trainer",
       ("classifier/trainer.c", "\tclf_publish(clf, NULL, CLF_ORIGIN_NONE, &judgement);\n",
        "\tclf_publish(clf, &model, CLF_ORIGIN_TRAINED, &judgement);\n"))

mutant("model-pinned-replaced", "A training replaces a pinned model.",
       "asan classifier/test_model_use",
       ("classifier/trainer.c", "\telse if (copy_model_in_use(clf, &in_use) == CLF_ORIGIN_PINNED)\n",
        "\telse if (copy_model_in_use(clf, &in_use) == CLF_ORIGIN_NONE)\n"))

mutant("model-file-any-scale", "A file's numbers have no lower bound.",
       "asan classifier/test_model_file",
       ("classifier/model_file.c", "!isfinite(*out) || *out < low ||", "!isfinite(*out) ||"))

mutant("counts-forget-the-latest", "A full bucket forgets what was changed last among equal counts.",
       "asan classifier/test_counts",
       ("classifier/counts.c", "\t\tif ((bucket[at] & CODE_MAX) <= (bucket[least] & CODE_MAX))",
        "\t\tif ((bucket[at] & CODE_MAX) < (bucket[least] & CODE_MAX))"))

mutant("counts-round-down", "A count is always rounded down, so that adds get lost.",
       "asan classifier/test_counts",
       ("classifier/counts.c", "\treturn random < (count - low) / (high - low) ? code + 1 : code;",
        "\treturn random < (count - low) / (high - low) - 1 ? code + 1 : code;"))

mutant("counts-nothing-pushes-out", "A key without a count pushes another one out of a full bucket.",
       "asan classifier/test_counts",
       ("classifier/counts.c", "\tif (known || code > 0) {", "\tif (known || code < 32) {"))

mutant("offers-uncorrected", "What is admitted and never written counts as written.",
       "asan classifier/test_offers",
       ("classifier/offers.c", "yield = offers_yield(offers);", "yield = 1;"))

mutant("offers-held-up-are-lost", "What a cap holds back counts as never written, so that ever more is admitted.",
       "asan classifier/test_offers",
       ("classifier/offers.c", "spent->held_up ? fmax(spent->written_bytes, admitted) : spent->written_bytes", "spent->written_bytes"))

mutant("offers-whole-bins", "The threshold lies at the upper end of a bin, so that ties are all refused.",
       "asan classifier/test_offers",
       ("classifier/offers.c", "return BIN_LEAST + (i + 1 - bytes / offers->bytes[i]) / BINS_PER_OCTAVE;",
        "return BIN_LEAST + (i + 1) / BINS_PER_OCTAVE;"))

mutant("worth-without-past", "What is known of a key before its present stay is not counted.",
       "asan classifier/test_worth",
       ("classifier/worth.c", "\tdouble count = past_count(features->past) * exp2(-(life_ms + idle_ms) / half_life_ms);", "\tdouble count = 0;"))

mutant("flash-hit-not-counted", "A hit on flash doesn't count for the object's next stay.",
       "asan server/store/cleaner/test_reclaim",
       ("classifier/classifier.c", "\t\tcounts_add(&clf->counts, sampler_key(&clf->sampler, hash), 1);\n\tnote_event(clf, hash, SAMPLER_READ, now_ms);",
        "\t\t;\n\tnote_event(clf, hash, SAMPLER_READ, now_ms);"))

mutant("score-without-budget", "The model's score is not lowered by what the write budget asks.",
       "asan classifier/test_trainer",
       ("classifier/admission.c", "\treturn model_decide(model, &state) - budget_threshold(clf);",
        "\treturn model_decide(model, &state);"))

mutant("guard-judges-what-it-learned", "A model is judged by the samples that it was trained with too.",
       "asan classifier/test_guard",
       ("classifier/guard.c", "\t\tif (!sample_held_out(sample))\n\t\t\tcontinue;\n", ""))

mutant("hot-object-decides", "All later reads of one hot object count when a model is judged.",
       "asan classifier/test_guard",
       ("classifier/guard.c", "sample->reads < HITS_COUNTED ? sample->reads : HITS_COUNTED;", "sample->reads;"))

mutant("simple-rule-samples", "Keys are sampled although the rule in force has no model.",
       "asan classifier/test_classifier",
       ("classifier/classifier.c", "\treturn clf_get_admission(clf) == CLF_ADMIT_SVM && sampler_wants(&clf->sampler, key);",
        "\treturn sampler_wants(&clf->sampler, key);"))

# ---- flashindex ----------------------------------------------------------------------------------

mutant("partner-not-inverse", "The other bucket of a slot's other bucket is a third one.",
       "asan flashindex/test_index",
       ("flashindex/index_internal.h", "\treturn (uint32_t)(sum >= bucket ? sum - bucket : sum + buckets - bucket);",
        "\treturn (uint32_t)((sum + bucket) % buckets);"))

mutant("lookup-during-move", "A lookup misses a slot that moves between its two looks.",
       "asan flashindex/test_threads",
       ("flashindex/lookup.c",
        "\t\tif (atomic_load_explicit(moves, memory_order_acquire) == before)\n\t\t\treturn;",
        "\t\treturn;"))

mutant("find-any-generation", "A slot is taken for one of an earlier life of its segment.",
       "asan flashindex/test_lookup",
       ("flashindex/lookup.c", "\t       segment_sequence(index, match->segment) == match->sequence;",
        "\t       segment_sequence(index, match->segment) != SEGMENT_CLOSED;"))

mutant("lookup-closed-segment", "Slots of a closed segment are found.",
       "asan flashindex/test_segment",
       ("flashindex/lookup.c",
        "\tif (match->sequence == SEGMENT_CLOSED || segment_table(index, match->segment) != pair->number ||",
        "\tif (segment_table(index, match->segment) != pair->number ||"))

mutant("lookup-oldest-first", "Matches come in the order of their slots, not the youngest first.",
       "asan flashindex/test_lookup",
       ("flashindex/lookup.c", "\tsort_youngest_first(out, seen.n);\n", "\t(void)sort_youngest_first;\n"))

mutant("clear-first-table-only", "A set clears a key's slots in one table of the index alone.",
       "asan flashindex/test_tables",
       ("flashindex/lookup.c",
        "\t\t\tif (any_match(index, key, table))",
        "\t\t\tif (table == 0 && any_match(index, key, table))"))

mutant("clear-keeps-extent", "A set leaves the extent of a large object.",
       "asan flashindex/test_extents",
       ("flashindex/lookup.c", "\tunsigned cleared = extents_clear(index, given->hash);", "\tunsigned cleared = 0;"))

mutant("insert-not-accounted", "A slot that is overwritten stays in the counts.",
       "asan flashindex/test_insert",
       ("flashindex/insert.c",
        "\t\taccount_overwritten(index, overwrite(at, slot));",
        "\t\t(void)overwrite(at, slot);"))

mutant("drop-the-hottest", "A full index drops the hottest slot of those that are in the way.",
       "asan flashindex/test_insert",
       ("flashindex/insert.c", "!coldest || warmth < least ||", "!coldest || warmth > least ||"))

mutant("drop-under-M", "A full index drops a slot although none may be dropped.",
       "asan flashindex/test_insert",
       ("flashindex/insert.c", "\tif (full && drop == FIDX_DROP_COLDEST)", "\tif (full)"))

mutant("move-loses-clock", "A slot that is moved starts with CLOCK 0.",
       "asan flashindex/test_insert",
       ("flashindex/insert.c", "\taccount_overwritten(index, overwrite(to, slot));",
        "\taccount_overwritten(index, overwrite(to, slot & ~6u));"))

mutant("hand-unbounded-ghosts", "The hand makes ghosts of all that is cold, however few bytes are asked for.",
       "asan flashindex/test_hand",
       ("flashindex/hand.c",
        "\t\t\t*ghost_bytes = bytes_less(*ghost_bytes, mean ? mean : 1);",
        "\t\t\t*ghost_bytes = bytes_less(*ghost_bytes, mean ? 0 : 1);"))

mutant("hand-misses-tables", "The hand never comes to the third table.",
       "asan flashindex/test_hand",
       ("flashindex/hand.c", "index->hand_table < FIDX_TABLES ? index->hand_table + 1 : 0;",
        "index->hand_table == 1 ? FIDX_TABLES : index->hand_table < FIDX_TABLES ? 1 : 0;"))

mutant("hand-looks-at-all", "A turn of the hand goes on over a nearly empty table until it has found enough.",
       "asan flashindex/test_hand",
       ("flashindex/hand.c", "all : visits * LOOKS_PER_VISIT + LOOKS_LEAST;", "all : all;"))

mutant("revived-not-accounted", "A ghost that is read stays one in the counts.",
       "asan flashindex/test_lookup",
       ("flashindex/lookup.c", "\t\tslot_account(index, held.pair.table, scan.found[0].at, match->segment, 0, -1);\n", ""))

mutant("recount-counts-twice", "A change of a slot that is not counted yet is accounted.",
       "asan flashindex/test_recount",
       ("flashindex/segment.c", "\tif (__builtin_expect(slot_is_counted(table, at), 1))\n", ""))

mutant("filter-probes-of-today", "A filter is asked with more probes than it was built with.",
       "asan flashindex/test_filter",
       ("flashindex/filter.c", "\tfilter->probes = filter->bytes[length - TRAILER_BYTES + 3];",
        "\tfilter->probes = filter->bytes[length - TRAILER_BYTES + 3] + 1u;"))

mutant("collision-rejects-owner", "A known collision rejects the owner of the slot too.",
       "asan flashindex/test_exact",
       ("flashindex/exact.c", "\t\t\treturn owner != hash;", "\t\t\treturn true;"))

mutant("collision-of-another-life", "A known collision is believed in the segment's next life.",
       "asan flashindex/test_exact",
       ("flashindex/exact.c", "\tuint64_t where = match->sequence ^", "\tuint64_t where ="))

mutant("table-keeps-memory", "An index table that is dropped keeps its memory.",
       "asan flashindex/test_tables",
       ("flashindex/tables.c", "\tregion_decommit(index->region, table_area(number));\n", ""))

mutant("old-key-is-believed", "A key goes by the tables that there were when it was computed.",
       "asan flashindex/test_tables",
       ("flashindex/index_internal.h",
        "\tif (__builtin_expect(key->epoch == tables_epoch(index), 1))",
        "\tif (__builtin_expect(key->epoch <= tables_epoch(index), 1))"))

mutant("extents-resize-loses", "Who looks while the table of extents is made anew misses what is still in the old one.",
       "asan flashindex/test_extents_resize",
       ("flashindex/extents.c", "\t\tthere = table_has_hash(index, old, hash) || table_has_hash(index, 1 - old, hash);",
        "\t\tthere = table_has_hash(index, 1 - old, hash);"))

mutant("extents-do-not-grow", "The table of extents stays as large as it was first.",
       "asan flashindex/test_extents_resize",
       ("flashindex/extents_resize.c", "\tif (groups >= most)\n", "\tif (groups >= GROUPS_LEAST)\n"))

mutant("extents-do-not-shrink", "The table of extents stays as large as it ever was.",
       "asan flashindex/test_extents_resize",
       ("flashindex/extents_resize.c",
        "\tif (groups > GROUPS_LEAST && (double)wanted",
        "\tif (groups > most && (double)wanted"))

mutant("verify-counts-no-ghosts", "A recount of the index doesn't see that a ghost was not counted.",
       "asan flashindex/test_verify",
       ("flashindex/verify.c",
        "\texpect_count(walk, \"ghosts\", number, recount->ghosts, COUNTS_GHOSTS(counts));\n", ""))

mutant("sweep-leaves-extents", "A sweep leaves the extents of the segment.",
       "asan flashindex/test_segment",
       ("flashindex/segment.c", "\tswept = extents_sweep(index, segment);", "\tswept = 0;"))

# ---- segments ------------------------------------------------------------------------------------

mutant("check-without-sequence", "A record of an earlier life of its segment passes the check.",
       "asan segments/test_record",
       ("segments/record.c",
        "\tuint64_t parts[4] = {sequence, offset};",
        "\tuint64_t parts[4] = {sequence & 0, offset};"))

mutant("check-without-offset", "A record's bytes pass the check wherever they lie.",
       "asan segments/test_record",
       ("segments/record.c",
        "\tuint64_t parts[4] = {sequence, offset};",
        "\tuint64_t parts[4] = {sequence, offset & 0};"))

mutant("header-of-another-life", "The header of an earlier life of a segment is taken for its own.",
       "asan segments/test_footer",
       ("segments/footer.c",
        "header->segment == segment && header->sequence == sequence &&",
        "header->segment == segment && sequence &&"))

mutant("footer-of-another-life", "The footer of an earlier life of a segment is taken for its own.",
       "asan segments/test_footer",
       ("segments/footer.c", "\t       footer->sequence == sequence;", "\t       sequence != 0;"))

mutant("plan-overlaps", "A plan lets records overlap by a granule.",
       "asan segments/test_plan_sweep",
       ("segments/plan_sweep.c",
        "\t\tsweep->frontier += sweep->local[i].steps;",
        "\t\tsweep->frontier += sweep->local[i].steps > 1 ? sweep->local[i].steps - 1 : 1;"))

mutant("plan-wrong-function", "A record lies where another function of its key leads.",
       "asan segments/test_plan_sweep",
       ("segments/plan_sweep.c", "\t\t\t   function_of(sweep, candidate, part, sweep->frontier));",
        "\t\t\t   function_of(sweep, candidate, part, sweep->frontier) ^ 1u);"))

mutant("plan-reads-too-short", "The first read of an object leaves out the longest 1 %, not 0.1 %.",
       "asan segments/test_plan",
       ("segments/plan.c", "\tuint64_t enough = slots - slots / 1000;", "\tuint64_t enough = slots - slots / 100;"))

mutant("offsets-of-one-byte", "A long step in a segment's list of offsets loses its high bits.",
       "asan segments/test_footer",
       ("segments/footer.c", "(step > 0x7f ? 0x80 : 0));", "(step > 0xfff ? 0x80 : 0));"))

mutant("stream-goes-on-after-error", "A segment's stream writes on after a chunk that failed.",
       "asan segments/test_stream",
       ("segments/stream.c", "\tif (bytes == 0 || stream->error)\n\t\treturn;", "\tif (bytes == 0)\n\t\treturn;"),
       ("segments/stream.c", "\tif (!stream->error)\n\t\tstream_copy(stream, bytes, length);",
        "\tstream_copy(stream, bytes, length);"))

mutant("aio-ring-ends", "Completions at the end of the kernel's ring are taken from beyond it.",
       "asan segments/test_aio",
       ("segments/aio.c", "\t\thead = head + 1 == ring->slots ? 0 : head + 1;", "\t\thead = head + 1;"))

mutant("submitter-last-first", "The submitter forgets requests that came while it was busy.",
       "asan segments/test_submitter",
       ("segments/submitter.c", "\tif (*last)\n\t\t(*last)->next = io;", "\tif (*last && *first == *last)\n\t\t(*last)->next = io;"))

mutant("zeros-that-failed-count", "A flash file counts as made as far as it was to be, although the file system ran full.",
       "asan segments/test_device_file",
       ("segments/device_file.c", "\t*to = from;\n\tmem_free(zeros);", "\tmem_free(zeros);"))

mutant("paper-forgets-words", "The paper's placement doesn't see that a later word of its bits is occupied.",
       "asan segments/test_plan_paper",
       ("segments/plan_paper.c", "\t\tif (used[first >> 6] & bits_of(first, count, &n))\n\t\t\treturn false;\n\treturn true;",
        "\t\treturn !(used[first >> 6] & bits_of(first, count, &n));\n\treturn true;"))

mutant("granule-of-extents", "Extents count in the choice of the granule, although they lie elsewhere.",
       "asan segments/test_plan_granule",
       ("segments/plan_granule.c", "\t\tif (plan_is_slot(&candidates[i]))", "\t\tif (candidates[i].length)"))

mutant("last-page-early", "A segment's last page is written beside the others, not after them.",
       "asan segments/test_stream",
       ("segments/stream.c", "\t\tif (stream->position == stream->barrier)\n\t\t\tstream_drain(stream);\n", ""))

mutant("failed-write-is-free", "The position of a segment that could not be written is used again at once.",
       "asan segments/test_writer",
       ("segments/writer.c",
        "\tseg_set_state(job->seg, job->segment, SEG_RETIRED);",
        "\tseg_set_state(job->seg, job->segment, SEG_FREE);"))

mutant("always-the-first-place", "The next segment is the first that isn't retired, not the oldest.",
       "asan segments/test_table",
       ("segments/table.c",
        "static bool next_usable(const struct segments *seg, uint32_t at, uint32_t *segment, enum seg_state *state)\n{\n",
        "static bool next_usable(const struct segments *seg, uint32_t at, uint32_t *segment, enum seg_state *state)\n{\n\tat = 0;\n"))

mutant("pin-any-life", "A pin holds a segment that has been written anew since.",
       "asan segments/test_table",
       ("segments/table.c", "\tif (sequence != 0 && atomic_load(&live->sequence) == sequence)",
        "\tif (sequence != 0 && atomic_load(&live->sequence) != 0)"))

mutant("reclaim-ignores-pins", "A segment is free although somebody reads from it.",
       "asan segments/test_table",
       ("segments/table.c",
        "\tif (!wait_for_pins(seg, live, timeout_ms))",
        "\tif (timeout_ms > 1000 && !wait_for_pins(seg, live, timeout_ms))"))

mutant("sequence-repeats", "Sequence numbers are used before they are reserved durably.",
       "asan segments/test_segments",
       ("segments/segments.c", "\tif (seg->next_sequence < seg->super.sequence_end)\n\t\treturn FS_OK;",
        "\tif (seg->next_sequence > 0)\n\t\treturn FS_OK;"))

mutant("cas-range-repeats", "A range of CAS ids is given out again after a start.",
       "asan segments/test_segments",
       ("segments/segments.c", "\tset_cas_end(seg, begin + count);\n\trc = seg_store_super(seg);\n",
        "\trc = seg_store_super(seg);\n\tset_cas_end(seg, begin + count);\n"))

mutant("state-of-any-run", "A state file is taken whichever run has written it.",
       "asan server/store/state/test_restart_files",
       ("server/store/state/restart.c", "saved->attach_epoch != info->attach_epoch", "saved->attach_epoch > info->attach_epoch"))

mutant("state-of-any-boot", "A state file is taken after another boot of the machine.",
       "asan server/store/state/test_restart_cold",
       ("server/store/state/restart.c", "!restart_boot_id(store, boot) || memcmp(saved->boot_id, boot, sizeof(boot)) != 0", "!restart_boot_id(store, boot)"))

mutant("expiry-begins-anew", "After a warm start the store's seconds begin anew.",
       "asan server/store/state/test_restart",
       ("server/store/state/restart.c", "\tstore->origin_us = saved->origin_us;\n", ""))

mutant("flush-mark-is-forgotten", "After a warm start objects that were flushed are there again.",
       "asan server/store/state/test_restart",
       ("server/store/state/restart.c", "atomic_store(&store->flush_cas, saved->flush_cas);", "atomic_store(&store->flush_cas, 0);"))

mutant("slots-of-gone-segments-stay", "The slots of a segment that was not saved are taken back.",
       "asan flashindex/test_restart",
       ("flashindex/recount.c", "\tatomic_store_explicit(slot, SLOT_EMPTY, memory_order_relaxed);\n", "\t(void)slot;\n"))

mutant("loaded-state-is-uncounted", "What a state file has is never counted.",
       "asan flashindex/test_restart",
       ("flashindex/restart.c", "\t\tresult = recount_begin(index);\n", "\t\tresult = FS_OK;\n"))

mutant("uncounted-slots-are-taken-off", "A slot that goes before it is counted is taken off the counts.",
       "asan flashindex/test_restart",
       ("flashindex/segment.c", "\tif (__builtin_expect(slot_is_counted(table, at), 1))", "\tif (slot_is_counted(table, at) || slots)"))

mutant("uncounted-function-is-found", "A slot with a function that is not in use is found before it is counted.",
       "asan flashindex/test_restart",
       ("flashindex/lookup.c", "\t    match->function >= index->functions)\n", "\t    match->function > SLOT_FUNCTION_MASK)\n"))

mutant("uncounted-table-is-found", "A slot in a table that is not its segment's is found before it is counted.",
       "asan flashindex/test_recount",
       ("flashindex/lookup.c", "segment_table(index, match->segment) != pair->number ||", "pair->number >= FIDX_TABLES ||"))

mutant("uncounted-extent-is-found", "An extent that reaches beyond its segment is taken for right.",
       "asan flashindex/test_restart",
       ("flashindex/extents_internal.h", "word_length(word) <= index->segment_bytes - offset;", "word_length(word) <= UINT32_MAX;"))

mutant("state-checksum-is-ignored", "The bytes of a state file are taken whatever their checksum.",
       "asan base/test_parts",
       ("base/parts.c", "return zeros == 0 && hash64(reader->head.length ? bytes : \"\", reader->head.length, SEED) == reader->head.bytes_checksum",
        "return zeros == 0"))

mutant("relocation-stays-twice", "After a kill within a relocation the slot is there twice.",
       "asan flashindex/test_attach",
       ("flashindex/attach.c", "\t\t\tatomic_store(from, SLOT_EMPTY);\n", "\t\t\t(void)from;\n"))

mutant("attach-of-any-sequence", "A region's segment is opened whatever sequence flash has it with.",
       "asan flashindex/test_attach",
       ("flashindex/attach.c", "if (sequence != sequences[s] || table", "if (table"))

mutant("filter-bits-are-lost", "A loaded segment has no filter.",
       "asan flashindex/test_restart",
       ("flashindex/restart.c", "row->mean_bytes, filter, row->filter_length);", "row->mean_bytes, NULL, 0), mem_free(filter);"))

mutant("late-reads-are-sent", "A read that would come too late is sent to the drive all the same.",
       "asan segments/test_reader",
       ("segments/reader.c", "read->expires_ns && read->expires_ns <= back_ns) {", "read->expires_ns && !back_ns) {"))

mutant("timed-out-read-stays", "A read that nobody waits for any more stays in the reader's queue.",
       "asan server/store/request/test_reads",
       ("segments/reader.c",
        "\tif (read->list != LIST_WAITING)\n\t\treturn false;",
        "\tif (read->list != LIST_WAITING || reader)\n\t\treturn false;"))

mutant("queue-not-bounded", "The drive is given as many reads as its queue has places, however slow it is.",
       "asan segments/test_read_rate",
       ("segments/read_rate.c", "\tif (depth >= most)\n\t\treturn most;", "\tif (depth > 0)\n\t\treturn most;"))

mutant("all-reads-admitted", "More requests are taken than the drive can answer in time.",
       "asan server/store/test_overload",
       ("segments/read_rate.c",
        "\tif (rate->patience_ns == 0 || ahead == 0)\n\t\treturn true;",
        "\tif (rate->patience_ns == 0 || queue)\n\t\treturn true;"))

mutant("silence-is-borne", "Reads that time out never take the device offline.",
       "asan server/store/test_overload",
       ("segments/reader.c",
        "\tif (read_rate_silent(rate, now_ns)) {",
        "\tif (read_rate_silent(rate, now_ns) && now_ns == 0) {"))

mutant("offline-for-ever", "A device that went offline is never tried again.",
       "asan server/store/test_overload",
       ("segments/health.c", "\tdue = now_ms >= health->retry_at_ms;", "\tdue = now_ms + 1 == 0;"))

mutant("probe-may-be-late", "A device that answers its probe late is back all the same.",
       "asan server/store/test_overload",
       ("segments/health.c",
        "\tif (patience_ms > 0 && clk_now_ms(seg->clock) - began_ms >= patience_ms)\n\t\treturn false;\n",
        "\t(void)began_ms;\n"))

mutant("cut-file-is-back", "A flash file that was cut short is online again, as its superblock can be read and written.",
       "asan segments/test_device_look",
       ("segments/health.c", "\tif (look_after(seg, why) != DEV_WHOLE)\n\t\treturn false;\n", "\t(void)look_after(seg, why);\n"))

mutant("extstore-by-layout", "What is laid out like an item of memcached's extstore is taken for one, whatever its check.",
       "asan segments/test_extstore",
       ("segments/extstore.c", "\treturn crc == check;\n", "\treturn crc == check || check != 0;\n"))

mutant("extstore-in-use", "The file of a memcached that runs is emptied.",
       "asan segments/test_extstore",
       ("segments/extstore.c", "\t\tresult = file_lock(fd);\n", ""))

mutant("room-to-the-byte", "A flash that has no room gets what there is to the byte, so that each start has another size.",
       "asan segments/test_check",
       ("segments/check.c", "\t\tfit = (most - others) / step * step;\n", "\t\tfit = most - others;\n"))

mutant("own-blocks-are-others", "On a full disk a flash that is there becomes smaller, and starts cold.",
       "asan segments/test_check",
       ("segments/check.c", "\treturn fit > kept ? fit : kept;\n", "\treturn fit;\n"))

mutant("older-copy-is-ours", "An older copy of the flash file in its place is taken for the flash of this start.",
       "asan segments/test_device_look",
       ("segments/health.c", "memcmp(found->uuid, seg->super.uuid, sizeof(found->uuid)) == 0 &&\n\t       "
        "found->attach_epoch == seg->super.attach_epoch;", "memcmp(found->uuid, seg->super.uuid, sizeof(found->uuid)) == 0;"))

mutant("write-proves-reads", "A segment that was written ends the back-off of reads that fail.",
       "asan segments/test_health",
       ("segments/health.c", "if (!health_offline(seg) && seg->health.cause == HEALTH_WRITES)", "if (!health_offline(seg))"))

mutant("no-back-off", "A device that fails when it is tried is tried again at once.",
       "asan segments/test_writer",
       ("segments/health.c", "\tretry_after(health, now_ms, at_most(2 * health->retry_after_ms, most_ms));",
        "\tretry_after(health, now_ms, at_most(0, most_ms));"))

# ---- server/store: what is on flash --------------------------------------------------------------

mutant("reclaim-second-look", "A record that was live at the first look comes back although its key was deleted since.",
       "asan server/store/cleaner/test_reclaim",
       ("server/store/cleaner/reclaim.c",
        "\t\t\t : fidx_find(store->index, &walk->key, &walk->match);",
        "\t\t\t : walk->match.sequence == walk->sequence;"))

mutant("reclaim-second-look-extent",
       "A large record that was live at the first look comes back although its key was deleted since.",
       "asan server/store/cleaner/test_reclaim",
       ("server/store/cleaner/reclaim.c",
        "\tlive = is_extent ? extent_is_live(store, walk->segment, walk->sequence, &walk->key, offset, &walk->match)\n",
        "\tlive = is_extent ? walk->match.sequence == walk->sequence\n"))

mutant("reclaim-takes-ghosts", "A ghost comes back into DRAM.",
       "asan server/store/cleaner/test_reclaim",
       ("server/store/cleaner/reclaim.c", "\t\treturn !walk->match.ghost &&\n\t\t       (walk->match", "\t\treturn (walk->match"))

mutant("reclaim-takes-all", "What was not read on flash comes back into DRAM.",
       "asan server/store/cleaner/test_reclaim",
       ("server/store/cleaner/reclaim.c",
        "(walk->match.read_on_flash || store->config.reinsertion == STORE_REINSERT_LIVE);",
        "true;"))

mutant("reclaim-asks-nothing", "Whatever its worth, an object stays when its segment is reclaimed.",
       "asan server/store/cleaner/test_reclaim",
       ("server/store/cleaner/reclaim.c", "\treturn clf_offer(\n\t\tstore->classifier,", "\treturn true || clf_offer(\n\t\tstore->classifier,"))

mutant("reclaim-keeps-copy-clean",
       "A clean copy stays clean when its object on flash goes, and is lost with the next eviction.",
       "asan server/store/cleaner/test_reclaim",
       ("server/store/cleaner/reclaim.c", "\t\t\tcopy_becomes_original(store, stripe, walk->hash, there);",
        "\t\t\t(void)copy_becomes_original;"))

mutant("reclaim-loses-clock", "An object comes back into DRAM without its CLOCK value.",
       "asan server/store/cleaner/test_reclaim",
       ("server/store/cleaner/reclaim.c", "\titem_set_clock(item, clock);\n", "\t(void)clock;\n"))

mutant("reclaim-believes-an-unchecked-key", "A key that nothing has checked ends a clean copy.",
       "asan server/store/cleaner/test_reclaim",
       ("server/store/cleaner/reclaim.c", "\tif (there && !checked) {", "\tif (false) {"))

mutant("reclaim-reads-all", "Long values that go with their segment are read.",
       "asan segments/test_walk",
       ("segments/walk.c", "\t\tif (next - offset >= GAP_BYTES)\n", "\t\tif (false)\n"))

mutant("reads-of-pages", "Reads of records begin and end at pages, whatever the drive's blocks.",
       "asan segments/test_reader",
       ("segments/reader.c", "\tunit = seg_read_unit(seg, home.device);", "\tunit = SEG_PAGE;"))

mutant("moves-wait-for-nobody", "The old device is closed while somebody reads from it.",
       "asan segments/test_move",
       ("segments/move.c", "homes_in_use(seg, 1 - move->number) ? SEG_MOVE_LEAVING", "false ? SEG_MOVE_LEAVING"))

mutant("commit-what-was-replaced", "An object that was replaced while its segment was written goes into the index.",
       "asan server/store/cleaner/test_commit",
       ("server/store/cleaner/commit.c",
        "\tif (item->state & ITEM_LINKED && stripe->frozen == 0 &&",
        "\tif (stripe->frozen == 0 &&"))

mutant("commit-frozen", "Commits don't wait for a read-modify-write that has frozen its stripe.",
       "asan server/store/request/test_lookup_end",
       ("server/store/cleaner/commit.c",
        "\tif (item->state & ITEM_LINKED && stripe->frozen == 0 &&",
        "\tif (item->state & ITEM_LINKED &&"))

mutant("commit-what-was-flushed", "An object that was flushed while its segment was written goes into the index.",
       "asan server/store/cleaner/test_commit",
       ("server/store/cleaner/commit.c",
        "\t    store_alive(store, item->expiry, item->cas, now_seconds)) {",
        "\t    now_seconds) {"))

mutant("commit-loses-clock", "An object goes to flash with CLOCK 0.",
       "asan server/store/cleaner/test_commit",
       ("server/store/cleaner/commit.c", "segment, placed->function, item_clock(item),", "segment, placed->function, 0,"))

mutant("dropped-candidate", "An object that a frozen stripe has kept from flash is never a candidate again.",
       "asan server/store/request/test_lookup_end",
       ("server/store/cleaner/commit.c",
        "\telse if (item->state & ITEM_LINKED)\n\t\tcandidate_set(store, stripe, item);\n",
        ""))

mutant("commit-drops-under-M", "Under -M a full index drops an object for another one.",
       "asan server/store/test_keep_all",
       ("server/store/cleaner/commit.c",
        "\t\t\t\t\t    cleaner_gives_up(store) ? FIDX_DROP_COLDEST : FIDX_DROP_NONE);",
        "\t\t\t\t\t    FIDX_DROP_COLDEST);"))

mutant("reclaim-under-M", "Under -M a segment with objects is written anew.",
       "asan server/store/test_keep_all",
       ("server/store/cleaner/room.c",
        "\tif (cleaner_gives_up(store))\n\t\treturn true;\n",
        "\tif (segment < UINT32_MAX)\n\t\treturn true;\n"))

mutant("room-looked-for-at-each-step", "Where a full flash may not be reclaimed, the cleaner gathers for it at each step.",
       "asan server/store/cleaner/test_room",
       ("server/store/cleaner/room.c",
        "\tif (result == FS_OK && state == SEG_FREE)\n\t\treturn true;\n",
        "\tif (result == FS_OK)\n\t\treturn state == SEG_FREE;\n"))

mutant("places-of-another-table", "Candidates keep the places that they have in a table which is not the segment's.",
       "asan server/store/cleaner/test_room",
       ("server/store/cleaner/room.c",
        "\tif (fidx_table_id(store->index, sizing->table) != gathered->table_id)",
        "\tif (gathered->table_id == UINT32_MAX)"))

mutant("dead-is-gathered", "What is expired or flushed is written to flash.",
       "asan server/store/cleaner/test_gather",
       ("server/store/cleaner/gather.c",
        "\tif (!store_alive(store, item->expiry, item->cas, round->now_seconds))\n\t\treturn;\n", ""))

mutant("filter-of-fewer-keys", "The filter of a segment lacks its last key.",
       "asan server/store/cleaner/test_filter",
       ("server/store/cleaner/filter.c",
        "\tfilter = fidx_filter_build(store->index, hashes, plan->count - plan->extents, length);",
        "\tfilter = fidx_filter_build(store->index, hashes, plan->count - plan->extents - 1, length);"))

mutant("extents-not-reserved", "The table of extents is never asked to grow for what a segment brings.",
       "asan server/store/cleaner/test_write",
       ("server/store/cleaner/write.c",
        "\t\t(void)!fidx_extents_reserve(store->index, plan->extents);",
        "\t\t(void)plan->extents;"))

mutant("tables-none-is-kept", "A choice of a table that fails is what the next segment is gathered for.",
       "asan server/store/cleaner/test_tables",
       ("server/store/cleaner/tables.c", "\tif (found)\n\t\t*table = chosen;\n\treturn found;\n", "\t*table = chosen;\n\treturn found;\n"))

mutant("tables-never-added", "An index that is full never gets another table.",
       "asan server/store/cleaner/test_tables",
       ("server/store/cleaner/tables.c",
        "\tfound = chosen != FIDX_TABLES || tables_grow(store, &tables, &chosen);",
        "\tfound = chosen != FIDX_TABLES || (!store->config.evict && tables_grow(store, &tables, &chosen));"))

mutant("tables-never-shrunk", "An index that is far too large stays so.",
       "asan server/store/cleaner/test_tables",
       ("server/store/cleaner/tables.c",
        "\tif (tables_shrink(store, &tables))",
        "\tif (objects == UINT64_MAX && tables_shrink(store, &tables))"))

mutant("tables-never-dropped", "An index table without segments keeps its memory.",
       "asan server/store/cleaner/test_tables",
       ("server/store/cleaner/tables.c",
        "\t\tif (tables[t].live && table_drains(store, t) && tables[t].segments == 0) {",
        "\t\tif (tables[t].live && table_drains(store, t) && tables[t].segments == UINT32_MAX) {"))

mutant("index-not-in-account", "What the index takes is not taken off the memory for objects.",
       "asan server/store/cleaner/test_tables",
       ("server/store/cleaner/tables.c",
        "\tatomic_store_explicit(&store->index_bytes, status.index_bytes + status.filter_bytes + status.other_bytes + more,",
        "\tatomic_store_explicit(&store->index_bytes, status.filter_bytes + status.other_bytes + more,"))

mutant("extent-at-any-offset", "A large object's record is live wherever it lies in its segment.",
       "asan server/store/state/test_on_flash",
       ("server/store/state/on_flash.c", "extent.sequence != sequence ||\n\t    extent.offset != offset)", "extent.sequence != sequence)"))

mutant("flash-made-in-vain", "A file is made larger than the most segments can use.",
       "asan server/store/state/test_sizing",
       ("server/store/state/sizing.c",
        "\tif (out->flash_used > SEG_MAX_SEGMENTS * out->segment_bytes + SEGMENT_MIB)",
        "\tif (out->segments > SEG_MAX_SEGMENTS)"))

# ---- server/store: reads of flash ----------------------------------------------------------------

mutant("reads-not-shared", "Each get of one object makes a read of its own.",
       "asan server/store/request/test_reads",
       ("server/store/request/reads.c",
        "\tstruct flash_read *read = reads_find(reads, wanted);\n\n\tmust",
        "\tstruct flash_read *read = lookup ? NULL : reads_find(reads, wanted);\n\n\tmust"))

mutant("kept-for-ever", "What was read once is kept without a bound.",
       "asan server/store/request/test_reads",
       ("server/store/request/reads.c",
        "\treads->kept_bytes += reads_cost(read);\n\treads_keep_within(reads, reads->kept_most);",
        "\treads->kept_bytes += reads_cost(read);"))

mutant("kept-in-spite-of-errors", "Bytes that failed their check are served from what is kept.",
       "asan server/store/request/test_reads",
       ("server/store/request/reads.c",
        "\treads_unlist(read->reads, read);\n}\n\nuint64_t reads_memory",
        "\t(void)read;\n}\n\nuint64_t reads_memory"))

mutant("read-without-pin", "A read does not hold its segment once its request has timed out.",
       "asan server/store/request/test_reads",
       ("server/store/request/reads.c",
        "\tseg_pin_again(reads->segments, wanted->segment);\n", ""),
       ("server/store/request/reads.c",
        "\tseg_unpin(reads->segments, seg_read->segment);\n\tread->done = true;",
        "\tread->done = true;"),
       ("server/store/request/reads.c", "\t\tseg_unpin(reads->segments, read->read.segment);\n", ""))

mutant("idle-lookups-unbounded", "A worker keeps as many idle lookups as it ever had.",
       "asan server/store/request/test_lookup_pool",
       ("server/store/request/lookup_pool.c", "\tif (worker->free_count >= LOOKUPS_IDLE_MOST) {", "\tif (worker->free_count >= UINT32_MAX) {"))

mutant("lookups-unbounded", "Any number of lookups may wait for the flash.",
       "asan server/store/test_overload",
       ("server/store/request/lookup.c",
        "\treturn worker->lookups < (begun ? worker->lookups_most : worker->lookups_most / 4 * 3);",
        "\treturn worker->lookups_most > 0 || begun;"))

mutant("lookups-not-in-account", "What waits for the flash is not taken off the memory for objects.",
       "asan server/store/test_overload",
       ("server/store/request/worker.c",
        "\tuint64_t bytes = reads_memory(&worker->reads) +\n\t\t\t (worker->lookups + worker->free_count) * "
        "sizeof(struct store_lookup);",
        "\tuint64_t bytes = seg_reader_memory(worker->reader);"))

mutant("multiget-torn", "The later keys of a multiget are refused though its first ones were taken.",
       "asan server/store/test_overload",
       ("server/store/request/lookup.c",
        "request_needs_value(worker->context.store, request) || (fate && fate->taken), admitted;",
        "request_needs_value(worker->context.store, request), admitted;"))

mutant("short-record-is-anothers",
       "Unchecked bytes of a long record count as another key's, and a delete answers that there is nothing.",
       "asan server/store/request/test_reads",
       ("server/store/request/lookup.c",
        "lookup_is_key(lookup->request, record) || lookup_needs_value(lookup);",
        "lookup_is_key(lookup->request, record);"))

mutant("unreadable-slot-stays",
       "A command that could not read an object leaves its slot, so that the value comes back.",
       "asan server/store/request/test_lookup",
       ("server/store/request/lookup.c",
        "\tlookup_drop_slot(lookup);\n\tlookup_read_on(lookup);\n}\n\nvoid lookup_on_read",
        "\tlookup_read_on(lookup);\n}\n\nvoid lookup_on_read"))

mutant("timed-out-change-untrue", "A change that timed out leaves the slots, so that the old value comes back.",
       "asan server/store/request/test_worker",
       ("server/store/request/apply.c", "\tif (changes)\n\t\taction_clear_slots(action);\n", ""))

mutant("expired-slot-stays", "An expired object on flash keeps its slot when it is met.",
       "asan server/store/request/test_lookup",
       ("server/store/request/lookup.c",
        "\t\tlookup_drop_slot(lookup); /* an expired or flushed flash object is dropped when met */\n",
        ""))

mutant("collision-not-learnt", "A read that found another key's record teaches nothing.",
       "asan server/store/request/test_lookup",
       ("server/store/request/lookup.c",
        "\tif (lookup->what == LOOKUP_SLOT) {\n\t\tfidx_learn(",
        "\tif (lookup->at > 1000) {\n\t\tfidx_learn("))

mutant("no-revalidation", "A read-modify-write acts on what it has read, whatever has become of it.",
       "asan server/store/request/test_lookup_end",
       ("server/store/request/lookup_end.c",
        "\t\tbool truth = lookup_still_true(store, lookup, record != NULL, match, &matches, &extent, &has_extent);",
        "\t\tbool truth = lookup_still_true(store, lookup, record != NULL, match, &matches, &extent, &has_extent) "
        "|| lookup->reads;"))

mutant("never-frozen", "A read-modify-write reads again for ever where its slots go on changing.",
       "asan server/store/request/test_lookup_end",
       ("server/store/request/lookup_end.c",
        "\tif (++lookup->rounds == LOOKUP_ROUNDS_MAX) {",
        "\tif (++lookup->rounds == UINT32_MAX) {"))

mutant("flush-leaves-slot", "A set under -M leaves the slot of what was flushed since it was read.",
       "asan server/store/request/test_lookup_end",
       ("server/store/request/lookup_end.c", "\t\tif (truth && has_own) {", "\t\tif (truth && has_own && current.record) {"))

mutant("promotes-over-newer", "A slow get promotes a value that was overwritten meanwhile.",
       "asan server/store/request/test_promote",
       ("server/store/request/promote.c",
        "\t    promote_finds_again(store, lookup) && (",
        "\t    (promote_finds_again(store, lookup) || true) && ("))

mutant("copies-keep-their-bytes", "The bytes of clean copies that are dropped stay counted.",
       "asan server/store/dram/test_copies",
       ("server/store/dram/table.c",
        "\tif (item->state & ITEM_CLEAN)\n\t\tcopies_account(store, -(int64_t)item_cost(item));\n\tif (",
        "\tif ("))

mutant("accounts-keep-what-goes", "The bytes of objects that go stay in their application's account.",
       "asan server/store/dram/test_limits",
       ("server/store/dram/limits.c", "limited_add(app, -(int64_t)item_cost(item), -1);", "limited_add(app, 0, -1);"))

mutant("floors-are-ignored", "Eviction takes objects of an application below its floor.",
       "asan server/store/cleaner/test_ceilings",
       ("server/store/cleaner/evict.c", "round->how == EVICT_ALL ? EVICT_BREAK_FLOOR : EVICT_SPARE;", "EVICT_AS_OTHERS;"))

mutant("a-ceilings-segment-is-everybodys", "A segment that is written for an application at its ceiling takes others' candidates too.",
       "asan server/store/cleaner/test_ceilings",
       ("server/store/cleaner/gather.c", "(store->cleaner->ceilings.only && !is_of_pressed(store, item))", "false"))

mutant("replaced-candidate-stays-counted", "An object that is replaced stays a candidate of its application.",
       "asan server/store/dram/test_limits",
       ("server/store/dram/table.c", "\t\tcandidate_clear(store, stripe, old); /* while it is in its account */\n", ""))

mutant("a-ceiling-is-everybodys", "A set at its application's ceiling makes room among all objects.",
       "asan server/store/cleaner/test_ceilings",
       ("server/store/cleaner/evict.c", "\tif (verdict == EVICT_PASS)\n\t\treturn;\n", ""))

mutant("no-second-chance", "A clean copy that is read makes room like one that is not.",
       "asan server/store/dram/test_copies",
       ("server/store/dram/copies.c", "\tagain = item && item_clock(item) > 0 &&",
        "\tagain = item && item_clock(item) > 3 &&"))

# ---- server/store: commands ----------------------------------------------------------------------

mutant("copy-keeps-slot", "A clean copy is changed, and its slot stays.",
       "asan server/store/request/test_apply",
       ("server/store/request/apply.c",
        "\t\taction_disown(action, current->item); /* see the invariant in README.md */\n", ""))

mutant("touched-copy-keeps-slot", "A clean copy is touched, and its slot stays.",
       "asan server/store/request/test_apply",
       ("server/store/request/apply_read.c", "\t\taction_disown(action, item);\n", ""))

mutant("touch-in-a-plan", "A touch changes an item that is being written.",
       "asan server/store/cleaner/test_commit",
       ("server/store/request/apply_read.c", "\tif (item && !(item->state & ITEM_PLANNED)) {", "\tif (item) {"))

mutant("cas-of-older", "A compare-and-swap with an older id succeeds.",
       "asan server/store/request/test_apply_write",
       ("server/store/request/apply_write.c", "\tif (cas == request->cas) {", "\tif (cas >= request->cas) {"))

mutant("cas-not-reserved", "CAS ids are given beyond those that are reserved on flash.",
       "asan server/store/cleaner/test_cleaner",
       ("server/store/state/ids.c",
        "\tif (next + IDS_RESERVE / 4 * 3 < reserved)\n\t\treturn true;",
        "\tif (next > 0)\n\t\treturn true;"))

mutant("flush-spares-the-newest", "flush_all leaves the object that was stored last.",
       "asan server/store/state/test_time",
       ("server/store/state/time.c",
        "\tmark = atomic_load(&store->cas_next) - 1;",
        "\tmark = atomic_load(&store->cas_next) - 2;"))

mutant("negative-exptime", "An object with a negative exptime lives for ever.",
       "asan server/store/state/test_time",
       ("server/store/state/time.c",
        "\tif (exptime < 0)\n\t\treturn ITEM_EXPIRED_ALWAYS;\n\tnow =",
        "\tif (exptime < 0)\n\t\treturn 0;\n\tnow ="))

mutant("two-win", "Of two readers of a stale object both are told to make it anew.",
       "asan server/store/request/test_apply_read",
       ("server/store/request/apply_read.c",
        "request->op == STORE_TOUCH || request->found.win_sent ||",
        "request->op == STORE_TOUCH ||"))

mutant("marked-candidate", "An object that is marked after it became a candidate goes to flash without its mark.",
       "asan server/store/request/test_options",
       ("server/store/request/options.c",
        "\t\tcandidate_clear(action->store, action->stripe, item);\n\t\treturn item;",
        "\t\treturn item;"))

mutant("invalidate-any-id", "A meta delete with an id that differs deletes.",
       "asan server/store/request/test_apply_write",
       ("server/store/request/options.c", "\tif (!request->has_options || !request->options.compare_cas)\n\t\treturn false;",
        "\tif (!request->has_options || request->op == STORE_DELETE || !request->options.compare_cas)\n\t\treturn false;"))

mutant("refuses-nothing-under-M", "Under -M a command brings an object into DRAM without room for it.",
       "asan server/store/dram/test_memory",
       ("server/store/request/apply.c",
        "\treturn action->store->config.evict || store_free_bytes(action->store) >= (int64_t)bytes;",
        "\treturn action->store && bytes > 0;"))

mutant("innocent-slot-under-M", "Under -M a set or delete takes the slot of another key along.",
       "asan server/store/test_keep_all",
       ("server/store/request/apply.c",
        "\tif (store_proves_slots(action->store))\n\t\treturn action_remove_own(action);\n\tcleared = ",
        "\tcleared = (action->own_slot && action_remove_own(action) ? 1 : 0) + "))

mutant("unread-set-under-M", "Under -M a set acts without having read what its key's slots lead to.",
       "asan server/store/test_keep_all",
       ("server/store/request/request_internal.h", "\tif (store_proves_slots(store))\n\t\treturn true;\n", ""))

mutant("unread-change-under-M", "Under -M a change of what can't be read is made all the same.",
       "asan server/store/test_keep_all",
       ("server/store/request/apply.c",
        "\tif (changes && store_proves_slots(action->store)) {",
        "\tif (changes && action->store->config.evict && store_proves_slots(action->store)) {"))

mutant("blind-delete-reads", "A delete whose answer nobody needs reads flash.",
       "asan server/store/request/test_execute",
       ("server/store/request/request_internal.h",
        "\t\treturn !request->has_options || !(options->blind || options->refused);",
        "\t\treturn options != NULL;"))

mutant("noreply-is-not-blind", "A text delete with noreply reads flash.",
       "asan protocol test_keep_all.py::test_a_delete_whose_answer_nobody_needs_reads_no_flash",
       ("server/proto/text_keys.c", "\t\treply->request.options = (struct store_options){ .blind = true };",
        "\t\treply->request.options = (struct store_options){ .blind = false };"))

# ---- server/store/state: the journal, rebuilds, saved objects ---------------------------------------

mutant("journal-without-sync", "A block counts as durable before it is.",
       "asan server/store/state/test_journal_read",
       ("server/store/state/journal.c", "\tif (error == 0)\n\t\terror = medium->sync(medium, file->number);\n", ""))

mutant("journal-next-is-not-told", "A file doesn't say that another one follows it.",
       "asan server/store/state/test_journal_read",
       ("server/store/state/journal.c", "\treturn write_block(journal, &before, n);", "\treturn n > 0 ? 0 : -EIO;"))

mutant("journal-fails-and-stays", "Answers go on after a failure although the files are still there.",
       "asan server/store/state/test_journal",
       ("server/store/state/journal.c", "if (journal_remove(journal->config.medium) == 0 &&",
        "if (journal_remove(journal->config.medium) <= 0 &&"))

mutant("journal-loses-an-entry", "An entry for which memory is out is forgotten.",
       "asan server/store/state/test_journal",
       ("server/store/state/journal.c", "if (has_lost_one(journal))", "if (has_lost_one(journal) && journal->count > journal->capacity)"))

mutant("journal-damage-is-an-end", "Whole blocks behind a damaged one are passed over.",
       "asan server/store/state/test_journal_read",
       ("server/store/state/journal_read.c", "return result == FS_OK ? FS_ECORRUPT : result;", "return FS_OK;"))

mutant("journal-older-files-unread", "Losses in older files are forgotten.",
       "asan server/store/state/test_journal_read",
       ("server/store/state/journal_read.c", "\t\tresult = read_older(reading, &out->file[i]);\n", "\t\tif (i > FILES_LOOKED_AT)\n\t\t\tresult = read_older(reading, &out->file[i]);\n"))

mutant("journal-file-may-be-deleted", "The journal goes on in a file that was deleted.",
       "asan server/store/state/test_journal_file",
       ("server/store/state/journal_file.c", "return st.st_nlink == 0 ? -ENOENT : 0;", "return 0;"))

mutant("journal-goes-on-after-a-kill", "Losses that a killed process didn't write down are missing.",
       "asan server/store/state/test_losses_start",
       ("server/store/state/losses_start.c", "(!is_last(store) || info.found != SEG_FOUND_CLEAN)", "!is_last(store)"))

mutant("crash-lets-live-longer", "With each rebuild an object lives for a part of a second longer.",
       "asan server/store/state/test_losses_start",
       ("server/store/state/losses_start.c", "#define FRACTIONS_S 2", "#define FRACTIONS_S 1"))

mutant("answers-before-the-journal", "An answer doesn't wait for the loss of its key's slot.",
       "asan server/store/request/test_park",
       ("server/store/state/losses.c",
        "\traise_to(&losses->ticket[tag % LOSSES_TAGS], journal_append(losses->journal, entry));",
        "\t(void)tag;\n\t(void)journal_append(losses->journal, entry);"))

mutant("flush-before-the-journal", "A flush_all is answered before it is durable.",
       "asan server/store/request/test_park",
       ("server/store/request/park.c", "return !losses || !park_until(worker, request, losses_barrier(losses));",
        "return !losses || losses_barrier(losses) < UINT64_MAX || !park_until(worker, request, 0);"))

mutant("rebuild-of-the-dead", "A rebuild brings back objects whose loss was written down.",
       "asan server/store/state/test_losses",
       ("server/store/cleaner/rebuild.c", "if (walk->segment->deads && bsearch(", "if (walk->segment->deads > 1000 && bsearch("))

mutant("rebuild-over-commands", "A rebuild brings back a key that a command has changed meanwhile.",
       "asan server/store/cleaner/test_rebuild",
       ("server/store/cleaner/rebuild.c", "\tif (losses_touched(store->losses, hash) ||\n\t    !store_alive(", "\tif (!store_alive("))

mutant("rebuild-forgets-the-one-before", "What commands changed in an earlier rebuild comes back.",
       "asan server/store/cleaner/test_rebuild",
       ("server/store/cleaner/rebuild.c", "walk->segment->sequence <= rebuild->changed[i].up_to", "walk->segment->sequence > rebuild->changed[i].up_to"))

mutant("rebuild-stop-drops-a-segment", "The segment that a stop interrupts is left out of the next rebuild.",
       "asan server/store/cleaner/test_rebuild",
       ("server/store/cleaner/rebuild.c", "if (result == FS_EAGAIN && losses_rebuild_again(store))", "if (result == FS_EAGAIN && store->config.region_dir)"))

mutant("rebuild-left-out-counts", "A segment that is left out for want of memory counts in the next rebuild.",
       "asan server/store/cleaner/test_rebuild",
       ("server/store/cleaner/rebuild.c", "\t\tstate->commit[rebuild->segment[rebuild->segments + i].segment].sequence = 0;\n", "\t\t(void)state;\n"))

mutant("rebuild-beside-the-budget", "What a rebuild takes isn't in the account of -m.",
       "asan server/store/cleaner/test_rebuild",
       ("server/store/cleaner/rebuild.c", "\tatomic_fetch_add(&store->losses_bytes, bytes - rebuild->bytes);\n\trebuild->bytes = bytes;\n", "\t(void)bytes;\n"))

mutant("start-passes-lock", "A start doesn't wait for the run before it.",
       "asan server/store/test_daemon_lock",
       ("server/store/daemon_lock.c", "operation | LOCK_NB) != 0)", "operation | LOCK_NB) < -1)"))

mutant("endpoints-of-any-address", "Two daemons with the same port at two addresses are taken for one.",
       "asan server/store/state/test_endpoints",
       ("server/store/state/endpoints.c", "return same || all->host_length == 0", "return true || same || all->host_length == 0"))

mutant("kin-keeps-its-file", "What a run with some of the same clients makes stale is there for a later one.",
       "asan server/store/cleaner/test_saved_items",
       ("server/store/cleaner/load_items.c", "SAVED_START_OTHER_DAEMON || saved_is_made_stale(store, &head)", "SAVED_START_OTHER_DAEMON"))

mutant("loads-over-commands", "A saved object takes the place of what a command has made of its key.",
       "asan server/store/cleaner/test_load_items",
       ("server/store/cleaner/load_items.c", "\tif (changed_has(atomic_load(&store->changed), hash) ||", "\tif ("))

# ---- server/store: memory and threads ------------------------------------------------------------

mutant("account-leaks", "An object that goes stays in the account of -m.",
       "asan server/store/dram/test_memory",
       ("server/store/dram/item.c", "\tcontext->item_bytes -= (int64_t)cost;\n", ""))

mutant("lookups-beside-the-budget", "What readers take is not taken off the memory for objects.",
       "asan server/store/dram/test_memory",
       ("server/store/dram/memory.c",
        "\t       atomic_load_explicit(&store->plan_bytes, memory_order_relaxed) +\n\t       "
        "atomic_load_explicit(&store->reader_bytes, memory_order_relaxed);",
        "\t       atomic_load_explicit(&store->plan_bytes, memory_order_relaxed);"))

mutant("evicts-what-is-read", "Eviction takes objects whatever their CLOCK says.",
       "asan server/store/dram/test_memory",
       ("server/store/cleaner/evict.c",
        "} else if (item_clock(item) > 0 && round->how < EVICT_ANY &&",
        "} else if (item_clock(item) > 3 && round->how < EVICT_ANY &&"))

mutant("evicts-unworthy-candidates", "A candidate is given up when the threshold has risen since.",
       "asan server/store/cleaner/test_evict",
       ("server/store/cleaner/score.c", "\tif (item->state & ITEM_CANDIDATE)\n\t\treturn true;\n", ""))

mutant("keeps-what-is-unworthy", "An object far below the threshold stays as long as its CLOCK says.",
       "asan server/store/cleaner/test_evict",
       ("server/store/cleaner/evict.c", " && !evict_is_unworthy(round, hash, item)) {", " && (!evict_is_unworthy(round, hash, item) || true)) {"))

mutant("keep-all-refuses-unworthy", "Under -M an object that is worth little stays in DRAM until that is full.",
       "asan server/store/cleaner/test_score",
       ("server/store/cleaner/score.c", " || !store->config.evict))", "))"))

mutant("keep-all-offers-too-late", "Under -M nothing is offered before memory is full.",
       "asan server/store/cleaner/test_keeper",
       ("server/store/cleaner/keeper.c", "free_bytes >= (int64_t)below)", "free_bytes >= 0)"))

mutant("gather-takes-any", "Of the candidates that were admitted the first ones go, and not the best.",
       "asan server/store/cleaner/test_gather",
       ("server/store/cleaner/gather.c", "uint64_t most = round.asked && cleaner_ranks(store) > want_bytes", "uint64_t most = round.asked && want_bytes == 0"))

mutant("evicts-what-is-planned", "Eviction takes objects that are being written.",
       "asan server/store/cleaner/test_evict",
       ("server/store/cleaner/evict.c",
        "\tif (item->state & ITEM_PLANNED) {\n\t\tround->planned++;",
        "\tif (item->state & ITEM_PLANNED && round->thorough) {\n\t\tround->planned++;"))

mutant("excess-hot-unbounded", "The keeper makes ghosts until there are enough, however long that takes.",
       "asan server/store/cleaner/test_keeper",
       ("server/store/cleaner/evict.c",
        "hot > threshold && turns < HAND_VISITS / HAND_VISITS_EXCESS; turns++) {",
        "hot > threshold; turns++) {"))

mutant("clean-copy-is-rewritten", "A clean copy is a candidate for flash, where its object still lies.",
       "asan server/store/cleaner/test_score",
       ("server/store/cleaner/score.c",
        "\treturn !(item->state & (ITEM_CLEAN | ITEM_PLANNED)) &&",
        "\treturn !(item->state & ITEM_PLANNED) &&"))

mutant("fill-each-start", "A fill begins at each start, whatever the superblock says of the last one.",
       "asan segments/test_fill",
       ("segments/fill.c", "(uint64_t)wall_s - last >= FILL_PAUSE_S", "(uint64_t)wall_s - last < FILL_PAUSE_S * 100ull"))

mutant("fill-without-end", "The ratio never holds, as a full flash is taken for one that has room.",
       "asan server/store/cleaner/test_fill",
       ("server/store/cleaner/fill.c", "\tif (store->rebuild || tables_are_full(store))\n\t\treturn false;\n\treturn seg_next", "\treturn true || seg_next"))

mutant("fill-loses-what-is-set", "While the flash is filled, objects are asked about when memory is full, and not before.",
       "asan server/store/cleaner/test_fill",
       ("server/store/cleaner/keeper.c", "(!store->config.evict || fill_is_on(store)) && keeper_offer", "!store->config.evict && keeper_offer"))

mutant("table-drains-for-ever", "The index's table that drains gets further segments, so that it never runs empty.",
       "asan server/store/cleaner/test_tables",
       ("server/store/cleaner/tables.c", "\tif (draining > last) {", "\tif (draining > 0) {"))

mutant("too-large-is-candidate", "An object over a quarter of a segment is a candidate.",
       "asan server/store/cleaner/test_score",
       ("server/store/cleaner/score.c",
        "\t       seg_record_length(item->key_length, item->value_length) <= store->segment_bytes / CANDIDATE_SHARE;",
        "\t       seg_record_length(item->key_length, item->value_length) <= store->segment_bytes;"))

mutant("candidates-not-counted-off", "What was gathered is still counted as waiting for the flash.",
       "asan server/store/cleaner/test_commit",
       ("server/store/dram/candidate.c",
        "\tint64_t before = atomic_fetch_sub_explicit(&store->candidate_count, sums->count, memory_order_relaxed);\n"
        "\tmust(before >= sums->count);\n",
        ""))

mutant("candidate-counted-twice", "An object that is marked a second time is counted a second time.",
       "asan server/store/dram/test_candidate",
       ("server/store/dram/candidate.c", "\tif (item->state & ITEM_CANDIDATE)\n\t\treturn;\n\tunsigned", "\tunsigned"))

mutant("hidden-account", "A thread's own share of the account may be any size.",
       "asan server/store/dram/test_item",
       ("server/store/dram/item.c",
        "\tif (context->item_bytes > batch || context->allocated_bytes > 4 * (uint64_t)batch)\n", "\tif (context->item_bytes > 4 * batch)\n"))

mutant("item-not-replaced", "An item that takes another's place gets no link.",
       "asan server/store/dram/test_table",
       ("server/store/dram/table.c", "\tspot.line->low[spot.link] = address_low(new);\n", ""))

mutant("tables-stay", "Compaction moves objects, and leaves tables where they are.",
       "asan server/store/dram/test_compact",
       ("server/store/dram/compact.c", "\t\tcompact_table(compaction, stripe);\n", ""),
       ("server/store/dram/compact.c", "static void compact_table(", "static void __attribute__((unused)) compact_table("))

mutant("worst-first", "A plan takes the worst candidates first.",
       "asan server/store/cleaner/test_gather",
       ("server/store/cleaner/gather.c", "\treturn RANKS - 1 - (bits >> 16);", "\treturn bits >> 16;"))

mutant("commit-in-one-piece", "All objects of a segment are committed without a step in between.",
       "asan server/store/cleaner/test_pace",
       ("server/store/cleaner/commit.c", "\t\t\tif (n % STEP_OBJECTS == 0)\n\t\t\t\tpace_step(store);\n", ""))

mutant("kept-object-is-not-disowned",
       "An object of DRAM with an equal record in a segment of bins is changed, and that record still counts.",
       "asan server/store/cleaner/test_bins",
       ("server/store/dram/dram.h", "store->frugal && item->state & (ITEM_PLANNED | ITEM_KEPT)",
        "store->frugal && item->state & ITEM_PLANNED"))

mutant("planned-object-is-not-killed",
       "What is changed while it is written to a segment of bins is found there all the same.",
       "asan server/store/cleaner/test_bins",
       ("server/store/dram/dram.h", "store->frugal && item->state & (ITEM_PLANNED | ITEM_KEPT)",
        "store->frugal && item->state & ITEM_KEPT"))

mutant("bins-killed-by-nobody",
       "A set or delete of a small object leaves its record in a segment of bins as it is.",
       "asan server/store/request/test_lookup_bins",
       ("server/store/request/apply.c", "\t\tcleared += bins_kill(action->store, action->key->hash, false);",
        "\t\tcleared += 0;"))

mutant("reclaim-in-one-piece", "All records of a victim segment are looked at without a step in between.",
       "asan server/store/cleaner/test_pace",
       ("server/store/cleaner/reclaim.c", "\tif (walk->records % RECLAIM_STEP_OBJECTS == 0)\n\t\tpace_step(walk->store);\n", ""))

mutant("pass-skips", "A pass of the crawler that stops in a stripe goes on with the next one.",
       "asan server/store/cleaner/test_keeper",
       ("server/store/cleaner/crawl.c", "\tif ((round->rescore || round->free_dead) && !crawl_lines(round, stripe, &crawl->pass_at))\n\t\treturn false;\n",
        "\tif (round->rescore || round->free_dead)\n\t\t(void)!crawl_lines(round, stripe, &crawl->pass_at);\n"))

mutant("pass-unbounded", "A pass of the crawler that is overdue is made in one step.",
       "asan server/store/cleaner/test_keeper",
       ("server/store/cleaner/crawl.c", "\twhile (due > 0 && round.met < PASS_OBJECTS)", "\twhile (due > 0)"))

mutant("keeper-in-the-cleaner", "Eviction and crawler are steps of the cleaner, which a hung write stops.",
       "asan server/store/cleaner/test_keeper",
       ("server/store/cleaner/keeper.c",
        "\treturn background_start(&store->keeper->background, \"keeper\", NULL, keeper_thread_step, store);",
        "\t(void)keeper_thread_step;\n\t(void)store;\n\treturn FS_OK;"),
       ("server/store/cleaner/cleaner.c", "static bool cleaner_thread_step(void *context)\n{\n\treturn cleaner_step(context);",
        "static bool cleaner_thread_step(void *context)\n{\n\tbool busy = keeper_step(context);\n\n\treturn "
        "cleaner_step(context) || busy;"))

mutant("hung-cleaner-unseen", "The watchdog is fed although the cleaner hangs by itself.",
       "asan server/store/cleaner/test_keeper",
       ("server/store/cleaner/cleaner.c", "now_ms <= cleaner_ms + patience_ms || seg_busy_ms(store->segments) > 0;",
        "cleaner_ms > 0 || seg_busy_ms(store->segments) > 0;"))

# ---- server/store: memory ------------------------------------------------------------------------

mutant("memory-young-not-spared", "CLOCK's hand takes what was written a moment ago.",
       "asan server/store/cleaner/test_evict",
       ("server/store/cleaner/evict.c", "(round->how != EVICT_ALL && evict_spares_young(round, item))", "false"))

mutant("memory-young-for-ever", "What was written within a second is spared, however much has been written since.",
       "asan server/store/cleaner/test_evict",
       ("server/store/cleaner/evict.c", "(after_mark_ms > 0 || (after_mark_ms == 0 && written_ms != now_ms)) &&\n\t       ", ""))

mutant("memory-young-in-its-millisecond", "What was written in the millisecond of the mark is not spared.",
       "asan server/store/cleaner/test_evict",
       ("server/store/cleaner/evict.c", "(after_mark_ms == 0 && written_ms != now_ms)", "false"))

mutant("memory-chains-never-shrink", "The chains of a stripe keep the memory of the most objects that they ever had.",
       "asan server/store/cleaner/test_evict",
       ("server/store/cleaner/evict.c", "\t\t\tstripe_shrink(store, stripe);\n", "\t\t\t;\n"))

mutant("memory-holes-not-closed", "After a shift of sizes nobody moves objects together.",
       "release server/store/dram/test_compact",
       ("server/store/dram/memory.c", "\t\tcompaction_thin(store, sparse, holes > from);\n", "\t\tholes = holes + 0;\n"))

mutant("memory-large-segments-not-written", "Two segments of candidates are waited for, where DRAM doesn't hold as many.",
       "asan server/store/cleaner/test_cleaner",
       ("server/store/cleaner/cleaner.c",
        "return half < segment ? segment : half < 2 * segment ? half : 2 * segment;",
        "return half < segment ? 4 * segment : 4 * segment;"),
       ("server/store/cleaner/cleaner.c", "\tif (!groups && free_bytes < (int64_t)segment / 2)\n", "\tif (!groups && free_bytes < -(1 << 30))\n"))

mutant("memory-keeper-spins", "A keeper that finds nothing to evict looks again at once.",
       "asan server/store/cleaner/test_evict",
       ("server/store/cleaner/evict.c", "\tstore->keeper->visited_in_vain = 0;\n\treturn false;", "\tstore->keeper->visited_in_vain = 0;\n\treturn true;"))

mutant("memory-too-little-starts", "A -m that leaves nothing for objects starts all the same.",
       "asan server/store/test_store",
       ("server/store/store.c", "memory_suffices(store, config->memory_bytes) ? ", "true ? "))

# ---- found by nothing once -----------------------------------------------------------------------

mutant("plan-ignores-a-floor", "A plan takes what an application's floor in memory needs, as what it has taken is still in the account.",
       "asan server/store/dram/test_limits",
       ("server/store/dram/limits.c", "limited_needs(app, cost + (uint64_t)app->planned_cost)", "limited_needs(app, cost)"))

mutant("deleted-counts-on-flash", "What an application has deleted counts as being on flash until its segment is reclaimed.",
       "asan server/store/cleaner/test_flash_limits",
       ("server/store/cleaner/flash_limits.c", "left = left < objects ? left : objects;", "left = objects;"))

mutant("kept-never-written", "What reclaims took back counts for a floor after it was written again.",
       "asan server/store/cleaner/test_flash_limits",
       ("server/store/dram/limits.c", "app->flash_kept -= app->flash_kept < bytes ? app->flash_kept : bytes;", "(void)bytes;"))

mutant("kept-never-forgotten", "What reclaims took back, and was evicted, counts for a floor for ever.",
       "asan server/store/cleaner/test_flash_limits",
       ("server/store/cleaner/flash_limits.c", "limits_number(limits, n)->flash_kept / FORGET_PART;", "0;"))

mutant("attach-any-epoch", "A region is attached whichever run of its flash has left it.",
       "asan server/store/state/test_attach_cold",
       ("server/store/state/attach.c", "(id == info->region_id && atomic_load(&kept->epoch) == info->attach_epoch)",
        "(id == info->region_id)"))

mutant("attach-any-sealed-epoch", "A region that was sealed for a move is attached to whichever run of its flash.",
       "asan server/store/state/test_attach_cold",
       ("server/store/state/attach.c", "(next_id == info->region_id && atomic_load(&kept->next_epoch) == info->attach_epoch)",
        "(next_id == info->region_id)"))

mutant("reclaim-tells-no-end", "A stay that ends with its segment is not counted.",
       "asan server/store/cleaner/test_reclaim",
       ("server/store/cleaner/reclaim.c",
        "\t\t\tclf_note_evicted(store->classifier, walk->hash, NULL, clk_now_ms(store->clock));\n", ""))

mutant("pauses-while-kills-wait", "The cleaner makes pauses although a crowded table of kills costs other keys' objects.",
       "asan server/store/cleaner/test_bins",
       ("server/store/cleaner/pace.c", "return left_ms <= wanted || pace_has_kills_waiting(store)", "return left_ms <= wanted"))

mutant("rescue-not-declined", "A rescue that finds no room is tried again at each step.",
       "asan server/store/cleaner/test_rescue",
       ("server/store/cleaner/rescue.c", "\tseg_rescue_decline(store->segments, segment);\n", ""))

mutant("incr-stays-candidate", "A number that is changed in place stays a candidate for flash.",
       "asan server/store/request/test_apply_number",
       ("server/store/request/apply_number.c", "\tcandidate_clear(action->store, action->stripe, item);\n", ""))

mutant("move-cancelled-while-leaving", "A move is cancelled although the flash has moved.",
       "asan server/store/cleaner/test_move",
       ("server/store/cleaner/move.c", "atomic_load(&mover->busy) && mover->told.state != STORE_MOVE_LEAVING;",
        "atomic_load(&mover->busy);"))

# ---- flashindex/frugal ---------------------------------------------------------------------------

mutant("frugal-kill-counted-twice", "A kill that is renewed in a later epoch is counted once more.",
       "asan flashindex/frugal/test_kills",
       ("flashindex/frugal/kills.c", "count_kills(frugal, is_kill(entry) ? 0 : 1);",
        "count_kills(frugal, 1);"))

mutant("frugal-close-not-kept", "A segment that is closed is open again after a kill of the process.",
       "asan flashindex/frugal/test_restart",
       ("flashindex/frugal/frugal.c", "\tatomic_store(&frugal->closed[segment], sequence);\n", ""))

mutant("frugal-laid-together-not-passed-over",
       "After a kill a bundle counts beside the one that it was laid together in, if it was the first of them.",
       "asan flashindex/frugal/test_restart",
       ("flashindex/frugal/restart.c", "other->oldest <= oldest &&", "other->oldest < oldest &&"))

mutant("frugal-merged-not-passed-over", "After a kill the last bundle that a merge took counts beside the chain.",
       "asan flashindex/frugal/test_restart",
       ("flashindex/frugal/restart.c", "serial <= frugal->chain->covers", "serial < frugal->chain->covers"))

mutant("frugal-watermark-ignored", "What a full table of kills has given up is found.",
       "asan flashindex/frugal/test_random",
       ("flashindex/frugal/find.c", "column->sequence <= search->watermark || !column_is_open",
        "!column_is_open"))

mutant("frugal-bundle-kills-ignored", "A kill that a bundle took over hides nothing.",
       "asan flashindex/frugal/test_random",
       ("flashindex/frugal/find.c", "column < killed_from ? judge(search, &columns[column], out) : CELL_END",
        "judge(search, &columns[column], out)"))

mutant("frugal-next-prefilter-lacks", "A prefilter that is made beside the present one lacks the bundles that come meanwhile.",
       "asan flashindex/frugal/test_random",
       ("flashindex/frugal/prefilter.c", "\t\t\tif (frugal->next_prefilter)\n\t\t\t\tprefilter_add(frugal->next_prefilter",
        "\t\t\tif (false)\n\t\t\t\tprefilter_add(frugal->next_prefilter"))

# ---- server/proto --------------------------------------------------------------------------------

mutant("text-key-one-longer", "The text protocol takes a key of 251 bytes.",
       "asan server/proto/test_text_parse",
       ("server/proto/text_parse.c", "if (words->word[0].length > TEXT_KEY_MAX)",
        "if (words->word[0].length > TEXT_KEY_MAX + 1u)"))

mutant("text-delete-any-time", "A delete takes any number behind its key.",
       "asan server/proto/test_text_parse",
       ("server/proto/text_parse.c", "(extra == 1 && !word_is(words, 1, \"0\", 1))", "false"))

mutant("text-faulty-value-not-skipped", "The value behind a faulty storage line is taken for commands.",
       "asan server/proto/test_text_parse",
       ("server/proto/text_parse.c", "out->value_follows = true;\n\tout->noreply = ends",
        "out->value_follows = false;\n\tout->noreply = ends"))

mutant("meta-flag-twice", "A meta command takes a flag twice.",
       "asan server/proto/test_meta_parse",
       ("server/proto/meta_parse.c", "if (kind == META_NO_FLAG || meta_given(out, *word)) {",
        "if (kind == META_NO_FLAG) {"))

mutant("meta-body-not-skipped", "The body behind an ms with a wrong flag is taken for commands.",
       "asan server/proto/test_meta_parse",
       ("server/proto/meta_parse.c", "out->body_follows = true; /*", "out->body_follows = false; /*"))

mutant("binary-key-and-extras-beyond-body", "A binary header may tell of more key and extras than its body has.",
       "asan server/proto/test_binary_parse",
       ("server/proto/binary_parse.c", "if (head > out->body_length)",
        "if (out->key_length > out->body_length)"))

# ---- server/net ----------------------------------------------------------------------------------

mutant("loan-of-a-datagram", "A request by UDP is lent.",
       "asan server/net/test_loan",
       ("server/net/loan.c", "\tif (sock->transport->datagram)\n\t\treturn false;\n", ""))

mutant("loan-never-reads-again", "A connection that comes back from a loan reads no more.",
       "asan server/net/test_loan",
       ("server/net/loan.c", "\tsock->conn.finishing = false;\n", ""))

mutant("loan-untold", "A borrower isn't told that its connection ended before the loan.",
       "asan server/net/test_loan",
       ("server/net/loan.c", "\tloan->take(loan->context, NULL);\n\tfree_loan(loan);", "\tfree_loan(loan);"))

mutant("unix-socket-taken", "The UNIX socket of a daemon that doesn't listen yet is taken for one left behind.",
       "debug protocol test_listen.py::test_unix_socket_of_a_daemon_that_does_not_listen_yet",
       ("server/net/holder.c", "\treturn listens || bound;\n", "\treturn listens;\n"))

mutant("unix-file-of-another", "A daemon that ends removes the UNIX socket that another one has made meanwhile.",
       "debug protocol test_listen.py::test_unix_socket_of_the_next_daemon_stays",
       ("server/net/listen.c", " &&\n\t    found.st_ino == net->unix_inode)", ")"))

# ---- base/metrics --------------------------------------------------------------------------------

mutant("counter-reset-forgotten", "A counter goes on from before a reset.",
       "asan base/metrics/test_counters",
       ("base/metrics/counters.c", "return ctr_total(counter) - base;",
        "return ctr_total(counter) + 0 * base;"))

mutant("counter-of-one-thread", "What other threads counted is forgotten.",
       "asan base/metrics/test_counters",
       ("base/metrics/counters.c", "\t\tblock->next = head;", "\t\tblock->next = NULL;"))

mutant("latency-reset-of-another", "A duration is counted from the reset of another kind on.",
       "asan base/metrics/test_latency",
       ("base/metrics/latency.c", "hist_subtract(out, &zero[latency]);",
        "hist_subtract(out, &zero[(latency + 1) % LAT_COUNT]);"))

mutant("metric-keeps-total", "A counter's name for Prometheus has its total twice.",
       "asan base/metrics/test_metrics",
       ("base/metrics/metrics.c", "\t\t\tname += 6;\n\t\t\tlength -= 6;", "\t\t\tlength -= 0;"))

# ---- conf ----------------------------------------------------------------------------------------

mutant("drive-size-short", "A drive's size counts a thousandth.",
       "asan conf/test_units",
       ("conf/units.c", "for (long power = suffix - suffixes; power >= 0; power--)",
        "for (long power = suffix - suffixes; power > 0; power--)"))

mutant("drive-years-unbounded", "A drive's warranty may last for any number of years.",
       "asan conf/test_units",
       ("conf/units.c", "if (years < YEARS_LEAST || years > YEARS_MOST)", "if (years < YEARS_LEAST)"))

mutant("size-overflows", "A size of 2^64 is taken.",
       "asan conf/test_units",
       ("conf/units.c", "if (value >= 0x1p64L)", "if (value > 0x1p64L)"))

mutant("size-half-a-suffix", "Of a size in MiB the last letter is left over.",
       "asan conf/test_units",
       ("conf/units.c", "cursor += 2;", "cursor += 1;"))

# ---- server/count --------------------------------------------------------------------------------

mutant("late-flash-hit-is-dram", "A late hit on flash counts as one in DRAM.",
       "asan server/count/test_durations",
       ("server/count/durations.c", "flash_hits ? LAT_flash_hit", "flash_hits ? LAT_dram_hit"))

mutant("samples-never-age", "Old samples of contents count as much as new ones.",
       "asan server/count/test_contents",
       ("server/count/contents.c", "scale(&contents.part[app][tier], kept);",
        "scale(&contents.part[app][tier], kept > 0 ? 1 : kept);"))

mutant("slow-keeps-keys", "The slow log keeps keys that it was not asked to keep.",
       "asan server/count/test_slow",
       ("server/count/slow.c", "\t\tif (atomic_load(&slow_log.keys)) {\n\t\t\tto->key = key;",
        "\t\tif (true) {\n\t\t\tto->key = key;"))

mutant("contents-bound-above", "A value at a bound is counted above it.",
       "asan server/count/test_contents",
       ("server/count/contents.c", "value > bounds[bucket])", "value >= bounds[bucket])"))

# ---- server/auth ---------------------------------------------------------------------------------

mutant("any-password", "Whoever knows a user's name logs in.",
       "asan server/auth/test_auth",
       ("server/auth/auth.c", "digest_of(key, password, password_length, out->password)",
        "digest_of(key, user, user_length, out->password)"))

# ---- server/admin --------------------------------------------------------------------------------

mutant("reload-keeps-the-old-value", "A reload says that --hot-fraction has changed, and leaves it.",
       "release protocol test_reload.py::test_what_changes_is_told_and_shown",
       ("server/admin/reload.c", "reload->tuning.hot_fraction = fresh->hot_fraction;", ";"))

mutant("watch-one-more", "There may be one watcher more than twenty.",
       "release protocol test_watch.py::test_there_are_at_most_twenty",
       ("server/admin/watch.c", "atomic_fetch_add(&watch->count, 1) >= WATCHERS_MAX)",
        "atomic_fetch_add(&watch->count, 1) > WATCHERS_MAX)"))

mutant("reload-memory-limit-stays", "A reload says that -m has changed, and leaves it.",
       "release protocol test_reload.py::test_memory_limit",
       ("server/admin/reload.c", "return store_set_memory_limit(reload->server->store, reload->fresh->memory_limit_bytes);",
        "return FS_OK;"))

mutant("reload-none-has-changed", "A reload that changes values says that none has changed.",
       "release protocol test_reload.py::test_under_load",
       ("server/admin/reload.c", "\treload->changes++;\n", ""))

mutant("passwords-not-read-again", "A reload of the password file leaves the users of before.",
       "asan server/auth/test_auth",
       ("server/auth/auth.c", "\told = auth->entries;\n\tauth->entries = entries;", "\told = entries;"))

mutant("empty-password-untold", "An empty password is taken without a warning.",
       "asan server/auth/test_auth",
       ("server/auth/auth_file.c", "*empty = user + 1 == length;", "*empty = false;"))

mutant("password-keeps-return", "A carriage return at a line's end is part of the password.",
       "asan server/auth/test_auth",
       ("server/auth/auth_file.c", "if (line[length - 1] == '\\r')\n\t\tlength--;", ""))

# ---- server/metrics ------------------------------------------------------------------------------

mutant("peers-of-a-network", "Each address of a network may guess passwords for itself.",
       "asan server/metrics/test_users",
       ("server/metrics/users.c", "memcmp(address, mapped, sizeof(mapped)) == 0 ? 16 : 8);", "16);"))

mutant("password-never-remembered", "Each request for /metrics computes its password's bcrypt again.",
       "asan server/metrics/test_users",
       ("server/metrics/users.c", "found |= CRYPTO_memcmp(remembered->digest[i], digest, DIGEST_BYTES) == 0;",
        "found |= CRYPTO_memcmp(remembered->digest[i], digest, DIGEST_BYTES) > 1;"))

mutant("ready-before-serving", "A daemon that doesn't serve yet is ready.",
       "asan server/metrics/test_http",
       ("server/metrics/http.c", "serving == METRICS_SERVES ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, text);",
        "MHD_HTTP_OK, text);"))

mutant("alive-when-ready", "A daemon that starts or stops isn't alive.",
       "asan server/metrics/test_http",
       ("server/metrics/http.c", "return say(connection, MHD_HTTP_OK, \"alive\\n\");",
        "return show_ready(metrics, connection);"))

# ---- server/store --------------------------------------------------------------------------------

mutant("check-passes-foreign-file", "A check of options takes any path for the flash.",
       "asan server/store/test_check",
       ("server/store/check.c", "code = check_path(config, reason);", "code = FS_OK;"))

mutant("check-passes-region", "A check of options doesn't look at --region-dir.",
       "asan server/store/test_check",
       ("server/store/check.c", "if (code == FS_OK && config->region_dir)",
        "if (code == FS_OK && !config->flash_path)"))

mutant("outlook-first-note", "Of several notes of ids a look takes the least.",
       "asan server/store/test_outlook",
       ("server/store/outlook.c", "else if (end > out->end)", "else if (end < out->end)"))

# ---- server/store/report -------------------------------------------------------------------------

mutant("segment-without-small", "A segment's figures lack its small objects without slots.",
       "asan server/store/report/test_segments",
       ("server/store/report/segments.c", "out->live_bytes += frugal_segment_bytes(store->frugal, number);",
        ";"))

mutant("copies-counted-twice", "An object with a clean copy counts as two.",
       "asan server/store/report/test_status",
       ("server/store/report/status.c", "index->used + index->extents_used - copies_count(store);",
        "index->used + index->extents_used;"))

mutant("account-below-zero", "An account that is below zero for a moment is shown as a huge one.",
       "asan server/store/report/test_status",
       ("server/store/report/status.c", "return n > 0 ? (uint64_t)n : 0;", "return (uint64_t)n;"))

mutant("walk-goes-on", "A walk over objects goes on after it was told to end.",
       "asan server/store/report/test_walk",
       ("server/store/report/walk.c", "\t\twalk->stopped = true;\n}", "\t\twalk->since_pause = 0;\n}"))

# ---- server --------------------------------------------------------------------------------------

mutant("status-line-too-long", "A line of state that doesn't fit is not cut.",
       "asan server/test_service",
       ("server/service_status.c", "\tif ((size_t)length >= line->left)\n\t\tlength = (int)line->left - 1;\n",
        ""))

mutant("rebuild-said-for-ever", "A rebuild is told after its end.",
       "asan server/test_service",
       ("server/service_status.c", "if (store->rebuilt_segments < store->rebuild_segments)",
        "if (store->rebuilt_segments <= store->rebuild_segments)"))

mutant("broken-journal-unsaid", "A broken journal is not told.",
       "asan server/test_service",
       ("server/service_status.c", "if (store->flash && store->journal_broken) {",
        "if (!store->flash && store->journal_broken) {"))

mutant("more-in-dram-than-in-all", "The line of state shows more objects in DRAM than in all.",
       "asan server/test_service",
       ("server/service_status.c", "dram = store->dram_items < store->curr_items ? store->dram_items : store->curr_items;",
        "dram = store->dram_items;"))

mutant("idle-is-normal", "A watcher is told that an idle client has closed its connection.",
       "release protocol test_watch.py::test_an_idle_client_is_closed_for_that",
       ("server/net/conns.c", "[CONN_REASON_IDLE] = \"idle_timeout\"", "[CONN_REASON_IDLE] = \"normal\""))

mutant("clock-mode-swapped", "The daemon counts hits up where it is to set both CLOCK bits, and the other way round.",
       "release protocol test_inspect.py::test_state_has_the_clock_mode_of_the_daemon",
       ("server/main.c", "conf->clock_mode == CONF_CLOCK_MFU", "conf->clock_mode != CONF_CLOCK_MFU"))

mutant("clock-mode-in-dram-swapped", "A hit in DRAM counts CLOCK up in mode lru, and sets both bits in mode mfu.",
       "asan server/store/request/test_apply_read",
       ("server/store/request/apply_read.c", "clock_mode == FIDX_CLOCK_LRU", "clock_mode != FIDX_CLOCK_LRU"))

mutant("last-port-refused", "-l refuses the last port.",
       "release protocol test_listen.py::test_bad_address",
       ("server/net/bind.c", "atoi(text) <= UINT16_MAX", "atoi(text) < UINT16_MAX"))

mutant("tls-record-left", "What TLS has read already waits until more arrives.",
       "release protocol test_tls.py::test_a_record_that_fills_what_is_left_of_the_buffer",
       ("server/net/tls.c", "*more = total >= RECORD_BYTES || SSL_has_pending(ssl);", "*more = total >= RECORD_BYTES;"))

mutant("auth-without-a-reason", "A start that has no memory for logins ends without a reason.",
       "asan server/auth/test_auth",
       ("server/auth/auth.c", "\t\tsnprintf(reason, 256, \"%s\", fs_strerror(FS_ENOMEM));\n", ""))

mutant("answers-larger-buffer-not-given-back", "A buffer that was freed counts as memory that clients take.",
       "asan server/net/test_output",
       ("server/net/output.c", "\t\tworker_gave(conn->worker, output->capacity);\n", ""))
