import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4ResponseMetadata,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { Usage } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { apiOf } from "../../transcript/policy.ts";
import { blocksOfParts } from "./answers.ts";
import type { Metadata, Report } from "./metadata.ts";
import type { AssistantPart } from "./parts.ts";
import { parsed } from "./signatures.ts";
import { errorMessageOf, stopReasonOf, usageOf } from "./usage.ts";

/** What a model said beside its content. */
export interface ResponseFacts {
  readonly finishReason: LanguageModelV4FinishReason;
  readonly usage?: LanguageModelV4Usage | undefined;
  readonly providerMetadata?: Metadata | undefined;
  readonly response?: LanguageModelV4ResponseMetadata | undefined;
}

/** Who was asked, and when. */
export interface ResponseAbout {
  readonly provider: string;
  readonly api: string;
  readonly model: string;
  readonly timestamp: number;
  /** Left out: not known. */
  readonly cost?: Required<NonNullable<Usage["cost"]>>;
}

export type AnswerDraft = Extract<MessageDraft, { role: "assistant" }>;

/** The answer of a model as a message of a session, with all that the provider said of it. */
export function assistantMessageOf(
  content: readonly LanguageModelV4Content[],
  facts: ResponseFacts,
  about: ResponseAbout,
  report: Report = () => undefined,
): AnswerDraft {
  const parts = content.flatMap((part) => promptPart(part, report));
  const blocks = blocksOfParts(parts, apiOf(about.provider, about.api));
  const { cost, ...rest } = about;
  const hasCalls = blocks.some((block) => block.type === "toolCall");
  const errorMessage = errorMessageOf(facts.finishReason);
  return {
    role: "assistant",
    content: blocks,
    ...rest,
    usage: usageOf(facts.usage, cost),
    stopReason: stopReasonOf(facts.finishReason, hasCalls),
    ...(errorMessage === undefined ? {} : { errorMessage }),
    skein: {
      finishReason: { ...facts.finishReason },
      ...(facts.usage === undefined ? {} : { usage: { ...facts.usage } }),
      ...responseField(facts),
      ...(cost === undefined && facts.usage !== undefined ? { costKnown: false } : {}),
    },
  };
}

function responseField({ response, providerMetadata }: ResponseFacts): {
  response?: Record<string, unknown>;
} {
  const { id, modelId, timestamp } = response ?? {};
  const time =
    timestamp === undefined || Number.isNaN(timestamp.getTime()) ? undefined : timestamp.toISOString();
  const known = Object.entries({ id, modelId, timestamp: time, providerMetadata }).filter(
    ([, value]) => value !== undefined,
  );
  return known.length === 0 ? {} : { response: Object.fromEntries(known) };
}

/** A part of a response as one of a prompt, which is what it is kept as. */
function promptPart(part: LanguageModelV4Content, report: Report): AssistantPart[] {
  const { providerMetadata, ...fields } = part;
  const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
  if (part.type === "tool-result" && part.preliminary === true) {
    const note = `A preliminary result of ${part.toolName} was left out; the final one stands for it.`;
    report({ step: "assistantMessageOf", kind: "preliminary_result", note });
    return [];
  }
  const same = { ...fields, ...options } as unknown as AssistantPart;
  switch (part.type) {
    case "tool-call":
      return part.providerExecuted === true
        ? [{ ...same, input: parsed(part.input) ?? part.input } as AssistantPart]
        : [same];
    case "tool-result": {
      const { result, isError, preliminary: _, ...rest } = part;
      const output = { type: isError === true ? "error-json" : "json", value: result };
      const { providerMetadata: _metadata, ...bare } = rest;
      return [{ ...bare, output, ...options } as AssistantPart];
    }
    default:
      return [same];
  }
}
