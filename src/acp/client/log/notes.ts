import type { EntryDraft } from "../../../core/seal.ts";
import { isRecord } from "../../../core/shape.ts";
import { cutText } from "../../../core/text.ts";
import { contentText, oneLine, titleText } from "./content-text.ts";
import { Texts } from "./texts.ts";

type Fields = Readonly<Record<string, unknown>>;

const mostEntries = 200;
const mostText = 100_000;
/** Between two steps; the rest is counted. */
const mostNotes = 20;
const mostCompactions = 20;
const mostKinds = 10;

interface Plan {
  /** `null`: it is the only one. */
  readonly id: string | null;
  readonly data: Fields;
}

interface Compaction {
  summary: Texts;
  error: string | null;
}

/** What is for people alone: plans, notices and compactions of the agent. Held back until no call waits for its result. */
export class Notes {
  #plan: Plan | null = null;
  /** The plan as it was written last, and whether another has come since: a long one is not compared at every step. */
  #written = "";
  #isNew = false;
  #waiting: EntryDraft[] = [];
  #leftOut = 0;
  #unknown = 0;
  readonly #kinds = new Set<string>();
  readonly #compactions = new Map<string, Compaction>();

  /** `false`: it is no update of these kinds. */
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
        this.#hold("acp.notice", noticeOf(update));
        return true;
      case "compaction_update":
        this.#compact(update);
        return true;
      case "compaction_summary_chunk":
        addSummary(this.#compaction(update.compactionId), [update.content]);
        return true;
      default:
        return false;
    }
  }

  /** An update of a kind that is not known: nothing comes of it, but that it is told at the end. */
  takeUnknown(kind: unknown): void {
    this.#unknown++;
    if (this.#kinds.size <= mostKinds) this.#kinds.add(titleText(kind, 64) || "(no kind)");
  }

  /** All that waits, oldest first; the plan only where it is another than it was. */
  flush(): readonly EntryDraft[] {
    const drafts = this.#waiting;
    if (this.#leftOut > 0)
      drafts.push(custom("acp.notice", { severity: "info", title: `${this.#leftOut} more were left out.` }));
    [this.#waiting, this.#leftOut] = [[], 0];
    return [...drafts, ...this.#newPlan()];
  }

  #newPlan(): readonly EntryDraft[] {
    if (!this.#isNew || this.#plan === null) return [];
    this.#isNew = false;
    const plan = JSON.stringify(this.#plan.data);
    if (plan === this.#written) return [];
    this.#written = plan;
    return [custom("acp.plan", this.#plan.data)];
  }

  /** The same at the end: compactions that did not come to theirs, and what was not known, are told too. */
  finish(): readonly EntryDraft[] {
    for (const compaction of this.#compactions.values())
      this.#hold("acp.compaction", compactionData("in_progress", compaction));
    this.#compactions.clear();
    if (this.#unknown > 0) this.#hold("acp.notice", unknownNotice(this.#unknown, [...this.#kinds]));
    return this.flush();
  }

  #setPlan(plan: Plan): void {
    this.#plan = plan;
    this.#isNew = true;
  }

  #hold(customType: string, data: Fields): void {
    if (this.#waiting.length < mostNotes) this.#waiting.push(custom(customType, data));
    else this.#leftOut++;
  }

  #compact({ compactionId, status, summary, error }: Fields): void {
    const compaction = this.#compaction(compactionId);
    if (summary !== undefined) compaction.summary = new Texts(mostText);
    if (Array.isArray(summary)) addSummary(compaction, summary);
    if (error !== undefined) compaction.error = typeof error === "string" ? cutText(error, mostText) : null;
    if (status === "in_progress") return;
    this.#hold("acp.compaction", compactionData(oneLine(status, 64), compaction));
    this.#compactions.delete(String(compactionId));
  }

  #compaction(id: unknown): Compaction {
    const key = String(id);
    const known = this.#compactions.get(key) ?? { summary: new Texts(mostText), error: null };
    // Nobody has as many under way: what is over is forgotten.
    if (this.#compactions.size < mostCompactions) this.#compactions.set(key, known);
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
  if (plan.type === "file") return { id, data: { uri: oneLine(plan.uri) } };
  if (plan.type !== "markdown") return { id, data: { entries: planEntries(plan.entries) } };
  return { id, data: { markdown: typeof plan.content === "string" ? cutText(plan.content, mostText) : "" } };
}

function planEntries(entries: unknown): readonly Fields[] {
  const listed = (Array.isArray(entries) ? entries : []).filter(isRecord);
  const all = listed.slice(0, mostEntries).map(({ content, priority, status }) => ({
    content: titleText(content),
    priority: oneLine(priority, 64),
    status: oneLine(status, 64),
  }));
  const more = listed.length - all.length;
  return more === 0
    ? all
    : [...all, { content: `[… ${more} more left out …]`, priority: "low", status: "pending" }];
}

function noticeOf({ severity, title, description }: Fields): Fields {
  return {
    severity: oneLine(severity, 64) || "info",
    title: titleText(title),
    ...(typeof description === "string" && { description: cutText(description, mostText) }),
  };
}

function unknownNotice(many: number, kinds: readonly string[]): Fields {
  const title = `Updates of kinds that are not known here were passed by: ${many}.`;
  const named = kinds.length > mostKinds ? [...kinds.slice(0, mostKinds), "…"] : kinds;
  return { severity: "info", title, description: named.join(", ") };
}

function custom(customType: string, data: Fields): EntryDraft {
  return { type: "custom", customType, data };
}
