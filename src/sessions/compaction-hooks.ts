import { escapeToLine, thrownText } from "../core/text.ts";
import type { CutPlan } from "../transcript/compaction/plan-cut.ts";
import type { CompactionDone } from "./compaction-outcome.ts";
import type { HookRegistry } from "./hooks.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** The hooks around one compaction. Whatever they do, the compaction comes to an outcome. */
export class CompactionHooks {
  readonly #hooks: HookRegistry;
  readonly #ctx: RuntimeContext;

  constructor(hooks: HookRegistry, ctx: RuntimeContext) {
    this.#hooks = hooks;
    this.#ctx = ctx;
  }

  /** They may call it off, or give the summary. One that wants to stop things calls it off. */
  async askBefore(
    plan: CutPlan,
  ): Promise<{ readonly cancel: string } | { readonly cancel: null; readonly summary: string | null }> {
    const { firstKeptEntryId, tokensBefore, previousSummary, isCut } = plan;
    const event = { firstKeptEntryId, tokensBefore, previousSummary, isCut, summary: null, ctx: this.#ctx };
    try {
      const asked = await this.#hooks.ask("before_compaction", { ...event, messages: [...plan.toSummarize] });
      return asked.cancel === null ? { cancel: null, summary: asked.summary } : { cancel: asked.cancel };
    } catch (error) {
      return { cancel: `a hook stopped it: ${lineOf(error)}` };
    }
  }

  /** Tells that it is done; what that fails with costs nothing but itself. */
  async tellAfter(done: CompactionDone): Promise<CompactionDone> {
    const { entryId, summary, firstKeptEntryId, tokensBefore, tokensAfter } = done;
    const event = { entryId, summary, firstKeptEntryId, tokensBefore, tokensAfter, ctx: this.#ctx };
    try {
      await this.#hooks.notify("after_compaction", event);
      return done;
    } catch (error) {
      return { ...done, hookFailed: lineOf(error) };
    }
  }
}

function lineOf(error: unknown): string {
  return escapeToLine(thrownText(error));
}
