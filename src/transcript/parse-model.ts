import { SkeinError } from "../core/errors.ts";

/** A model and its provider. */
export interface ModelRef {
  readonly provider: string;
  readonly model: string;
  /** The wire format, where it differs from the provider's default. */
  readonly api?: string;
}

/** Parses `provider/model`. The model is everything after the first slash, since some servers use slashes in names. */
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
