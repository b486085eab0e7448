import type { SummaryRequest } from "../../src/entry-store.ts";
import type { EntryDraft } from "../../src/index.ts";
import { summaryHeadings } from "./provider-stand-in.ts";
import { assistantMessage } from "./session-text.ts";

/**
 * A long conversation with everything that a compaction can encounter. Each message has its own mark, with `mark-<n>.`
 * at its beginning and, if it is long, `tail-<n>.` at its end. Text that a summarizer must not see contains
 * `hidden-<n>.`.
 */

/** Returns the same numbers each time. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const chinese = "我们把京都的行程改成三天，先去清水寺，再去岚山，晚上在鸭川边上散步。";
const english = "We looked at the parser again and found that the last line of a file may be torn. ";

export interface StoryTurn {
  readonly drafts: readonly EntryDraft[];
}

export function* longStory(turns: number, seed = 7): Generator<StoryTurn> {
  const next = numbers(seed);
  let mark = 0;
  const filler = (sentences: number) => (next(3) === 0 ? chinese : english).repeat(sentences);
  const marked = (sentences: number) => {
    const id = ++mark;
    return `mark-${id}. ${filler(sentences)} tail-${id}.`;
  };
  const hidden = () => `hidden-${++mark}.`;
  const group = (turn: number, step: number): EntryDraft[] => {
    const calls = Array.from({ length: 1 + next(4) }, (_, index) => ({
      type: "toolCall" as const,
      // IDs repeat from turn to turn, as with some models.
      id: `call-${step}-${index}`,
      name: index % 2 === 0 ? "read" : "edit",
      arguments: { path: `src/file-${next(60)}.ts`, note: marked(1) },
    }));
    const thinking = { type: "thinking" as const, thinking: hidden(), thinkingSignature: "c2ln" };
    const text = { type: "text" as const, text: marked(1) };
    const message = {
      ...assistantMessage(""),
      content: [thinking, text, ...calls],
      stopReason: "toolUse" as const,
    };
    return [
      { type: "message", message },
      ...calls.map(
        (call, index): EntryDraft => ({
          type: "message",
          message: {
            role: "toolResult",
            toolCallId: call.id,
            toolName: call.name,
            content: [{ type: "text", text: marked(index === 0 && (turn % 9 === 0 || step > 12) ? 60 : 2) }],
            isError: next(10) === 0,
          },
        }),
      ),
    ];
  };
  for (let turn = 0; turn < turns; turn++) {
    const drafts: EntryDraft[] = [];
    if (turn % 11 === 0)
      drafts.push({ type: "custom_message", customType: "weather", content: marked(1), display: false });
    if (turn % 17 === 0) drafts.push({ type: "model_change", provider: "openai", modelId: `m${turn}` });
    if (turn % 23 === 0) drafts.push({ type: "branch_summary", fromId: "root", summary: marked(2) });
    if (turn % 13 === 0) {
      const isHidden = turn % 2 === 0;
      drafts.push({
        type: "message",
        message: {
          role: "bashExecution",
          command: "ls",
          output: isHidden ? hidden() : marked(1),
          cancelled: false,
          truncated: false,
          exitCode: 0,
          ...(isHidden ? { excludeFromContext: true } : {}),
        },
      });
    }
    const image =
      turn % 29 === 0 ? [{ type: "image" as const, data: "aGFsbG8h", mimeType: "image/png" }] : [];
    drafts.push({
      type: "message",
      message: { role: "user", content: [{ type: "text", text: marked(1 + next(3)) }, ...image] },
    });
    // Occasionally adds a turn that is larger than everything that can be kept.
    const steps = turn % 200 === 90 ? 60 : next(turn % 40 === 0 ? 12 : 3);
    for (let step = 0; step < steps; step++) drafts.push(...group(turn, step));
    drafts.push({ type: "message", message: { ...assistantMessage(marked(1 + next(2))) } });
    if (turn % 19 === 0) drafts.push({ type: "custom", customType: "note", data: { turn } });
    yield { drafts };
  }
}

export function marksIn(text: string): Set<string> {
  return new Set(text.match(/\b(?:mark|tail)-\d+\./g) ?? []);
}

/** Notes with every heading and with the user's last request under the right one. */
export function goodNotes(prompt: string, text = "As before."): string {
  const ask = prompt.split("\n[User]: ").at(-1)?.slice(0, 400).split("\n")[0] ?? "";
  return summaryHeadings
    .map(
      (heading) =>
        `## ${heading}\n${heading === "Pending asks" ? ask.replaceAll(/(mark|tail)-\d+\./g, "") : text}`,
    )
    .join("\n\n");
}

/** A summarizer that follows its instructions and records its input. */
export function diligent() {
  const requests: SummaryRequest[] = [];
  const summarize = async (request: SummaryRequest) => {
    requests.push(request);
    return goodNotes(request.prompt, `Notes ${requests.length}.`);
  };
  return { requests, summarize };
}
