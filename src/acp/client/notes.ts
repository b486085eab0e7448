import { isRecord } from "../../core/is-record.ts";
import type { EntryDraft } from "../../core/seal.ts";
import { cutText } from "../../core/text.ts";
import { TextBuffer } from "./step.ts";
import { contentText, lineText, titleText } from "./tool-content.ts";

type Fields = Readonly<Record<string, unknown>>;

const maxPlanEntries = 200;
const maxTextChars = 100_000;
/** The maximum number of notes per step. Further notes are only counted. */
const maxNotes = 20;
const maxCompactions = 20;
const maxUnknownKinds = 10;

interface Plan {
  /** `null` if the agent does not assign IDs to plans. Such an agent has only one plan. */
  readonly id: string | null;
  readonly data: Fields;
}

interface Compaction {
  summary: TextBuffer;
  error: string | null;
}

/**
 * The agent's plans, notices and compactions, which are meant only for people. They are held until every call has its
 * result.
 */
export class Notes {
  #plan: Plan | null = null;
  /** The plan as last written. It is compared only after an update, because plans can be long. */
  #writtenPlan = "";
  #isPlanChanged = false;
  #waiting: EntryDraft[] = [];
  #leftOutCount = 0;
  #unknownCount = 0;
  readonly #unknownKinds = new Set<string>();
  readonly #compactions = new Map<string, Compaction>();

  /** Returns `false` if the update is not a plan, notice or compaction. */
  take(update: Fields): boolean {
    switch (update.sessionUpdate) {
      case "plan":
        this.#setPlan({ id: null, data: { entries: planEntries(update.entries) } });
        return true;
      case "plan_update":
        if (isRecord(update.plan)) this.#setPlan(planOf(update.plan));
        return true;
      case "plan_removed":
        if (this.#plan?.id === update.planId) this.#setPlan({ id: null, data: { entries: [] } });
        return true;
      case "notice":
        this.#add("acp.notice", noticeOf(update));
        return true;
      case "compaction_update":
        this.#takeCompaction(update);
        return true;
      case "compaction_summary_chunk":
        addSummary(this.#compaction(update.compactionId), [update.content]);
        return true;
      default:
        return false;
    }
  }

  /** Counts an update of an unknown kind. `finish` adds a single notice for all of them. */
  takeUnknown(kind: unknown): void {
    this.#unknownCount++;
    if (this.#unknownKinds.size <= maxUnknownKinds)
      this.#unknownKinds.add(titleText(kind, 64) || "(no kind)");
  }

  /** Returns the pending notes, oldest first, and the plan if it has changed. */
  flush(): readonly EntryDraft[] {
    const drafts = this.#waiting;
    if (this.#leftOutCount > 0) {
      const title = `${this.#leftOutCount} more were omitted.`;
      drafts.push(customEntry("acp.notice", { severity: "info", title }));
    }
    [this.#waiting, this.#leftOutCount] = [[], 0];
    return [...drafts, ...this.#changedPlan()];
  }

  /** Like `flush`, but includes unfinished compactions and a notice about unknown updates. */
  finish(): readonly EntryDraft[] {
    for (const compaction of this.#compactions.values())
      this.#add("acp.compaction", compactionData("in_progress", compaction));
    this.#compactions.clear();
    if (this.#unknownCount > 0) {
      const kinds = [...this.#unknownKinds];
      const named = kinds.length > maxUnknownKinds ? [...kinds.slice(0, maxUnknownKinds), "…"] : kinds;
      const title = `Skipped updates of unknown kinds: ${this.#unknownCount}.`;
      this.#add("acp.notice", { severity: "info", title, description: named.join(", ") });
    }
    return this.flush();
  }

  #changedPlan(): readonly EntryDraft[] {
    if (!this.#isPlanChanged || this.#plan === null) return [];
    this.#isPlanChanged = false;
    const plan = JSON.stringify(this.#plan.data);
    if (plan === this.#writtenPlan) return [];
    this.#writtenPlan = plan;
    return [customEntry("acp.plan", this.#plan.data)];
  }

  #setPlan(plan: Plan): void {
    this.#plan = plan;
    this.#isPlanChanged = true;
  }

  #add(customType: string, data: Fields): void {
    if (this.#waiting.length < maxNotes) this.#waiting.push(customEntry(customType, data));
    else this.#leftOutCount++;
  }

  #takeCompaction({ compactionId, status, summary, error }: Fields): void {
    const compaction = this.#compaction(compactionId);
    if (summary !== undefined) compaction.summary = new TextBuffer(maxTextChars);
    if (Array.isArray(summary)) addSummary(compaction, summary);
    if (error !== undefined)
      compaction.error = typeof error === "string" ? cutText(error, maxTextChars) : null;
    if (status === "in_progress") return;
    this.#add("acp.compaction", compactionData(lineText(status, 64), compaction));
    this.#compactions.delete(String(compactionId));
  }

  #compaction(id: unknown): Compaction {
    const key = String(id);
    const known = this.#compactions.get(key) ?? { summary: new TextBuffer(maxTextChars), error: null };
    // Beyond the limit, compactions are not tracked. Real agents run far fewer at the same time.
    if (this.#compactions.size < maxCompactions) this.#compactions.set(key, known);
    return known;
  }
}

function addSummary({ summary }: Compaction, blocks: readonly unknown[]): void {
  for (const block of blocks) summary.add("text", null, contentText(block));
}

function compactionData(status: string, { summary, error }: Compaction): Fields {
  return { status, ...(!summary.isEmpty && { summary: String(summary) }), ...(error !== null && { error }) };
}

function planOf(plan: Fields): Plan {
  const id = typeof plan.planId === "string" ? plan.planId : null;
  if (plan.type === "file") return { id, data: { uri: lineText(plan.uri) } };
  if (plan.type !== "markdown") return { id, data: { entries: planEntries(plan.entries) } };
  const markdown = typeof plan.content === "string" ? cutText(plan.content, maxTextChars) : "";
  return { id, data: { markdown } };
}

function planEntries(entries: unknown): readonly Fields[] {
  const listed = (Array.isArray(entries) ? entries : []).filter(isRecord);
  const shown = listed.slice(0, maxPlanEntries).map(({ content, priority, status }) => ({
    content: titleText(content),
    priority: lineText(priority, 64),
    status: lineText(status, 64),
  }));
  const more = listed.length - shown.length;
  if (more === 0) return shown;
  return [...shown, { content: `[… ${more} more omitted …]`, priority: "low", status: "pending" }];
}

function noticeOf({ severity, title, description }: Fields): Fields {
  return {
    severity: lineText(severity, 64) || "info",
    title: titleText(title),
    ...(typeof description === "string" && { description: cutText(description, maxTextChars) }),
  };
}

function customEntry(customType: string, data: Fields): EntryDraft {
  return { type: "custom", customType, data };
}
