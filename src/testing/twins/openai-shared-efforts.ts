import type { Refusal } from "./contract.ts";
import { refuse } from "./openai-shared-errors.ts";
import { quotedList } from "./openai-shared-values.ts";

/**
 * The efforts of reasoning that OpenAI's models take, as their pages list them and the server names them when it
 * refuses another. Of a model that is not here, any is taken. The first that fits counts.
 */
const takes: readonly (readonly [models: RegExp, efforts: string])[] = [
  [/^gpt-5(\.\d)?-chat/, "medium"],
  [/^gpt-5-pro/, "high"],
  [/^gpt-5\.[245]-pro/, "medium high xhigh"],
  [/^gpt-5(\.1)?-codex(?!-max)/, "low medium high"],
  [/^gpt-5\.(1-codex-max|[23]-codex)/, "low medium high xhigh"],
  [/^gpt-5(-mini|-nano)?(-\d{4}|$)/, "minimal low medium high"],
  [/^gpt-5\.1(-\d{4}|$)/, "none low medium high"],
  [/^gpt-5\.[245](-mini|-nano)?(-\d{4}|$)/, "none low medium high xhigh"],
  [/^gpt-5\.6/, "none low medium high xhigh max"],
  [/^(o1|o1-pro|o3|o3-pro|o3-mini|o4-mini)(-\d{4}|$)/, "low medium high"],
];

/** "The supported values depend on the model" (Reasoning guide); `o1-mini` and `o1-preview` know no such parameter. */
export function checkEffort(model: string, effort: unknown, param: string): Refusal | null {
  if (typeof effort !== "string") return null;
  const rule = "unsupported_effort";
  if (/^o1-(mini|preview)/.test(model)) {
    const message = `Unsupported parameter: '${param}' is not supported with this model.`;
    return refuse({ rule, message, param, code: "unsupported_parameter" });
  }
  const efforts = takes.find(([models]) => models.test(model))?.[1].split(" ");
  if (efforts === undefined || efforts.includes(effort)) return null;
  const message = `Unsupported value: '${effort}' is not supported with the '${model}' model. Supported values are: ${quotedList(efforts)}.`;
  return refuse({ rule, message, param, code: "unsupported_value" });
}
