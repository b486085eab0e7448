import { Refused } from "../../calls/dispatch.ts";
import { payloadText } from "../../calls/repeated.ts";
import { tooLarge } from "./refusals.ts";

/** The longest text that there can be, near enough. */
const longestText = 2 ** 29;

/** An answer as JSON, made once. One that is longer than a text can be was asked for by mistake. */
export function jsonText(answer: unknown): string {
  try {
    return payloadText(answer);
  } catch (error) {
    if (error instanceof RangeError) throw new Refused(tooLarge("The answer", longestText));
    throw error;
  }
}
