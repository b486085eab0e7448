import { SkeinError } from "../core/errors.ts";

/** Which model, of whom. */
export interface ModelRef {
  readonly provider: string;
  readonly model: string;
  /** The wire format, where it is not the one that the provider's name stands for. */
  readonly api?: string;
}

/** Reads `provider/model`. Everything behind the first slash is the model: some servers have slashes in their names. */
export function parseModel(text: string): ModelRef {
  const slash = text.indexOf("/");
  const [provider, model] = slash === -1 ? ["", ""] : [text.slice(0, slash), text.slice(slash + 1)];
  if (/^[A-Za-z0-9][\w.-]*$/.test(provider) && model.trim() !== "" && !/\s/.test(model)) {
    return { provider, model };
  }
  throw new SkeinError("invalid_arguments", {
    problem: `"${text}" names no model`,
    advice: "Write it as provider/model, as in anthropic/claude-sonnet-4-5",
  });
}
