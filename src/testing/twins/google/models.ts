import { pathOf } from "../fields.ts";

const root = "/v1beta/";

/** What is called: `/v1beta/models/<model>:<method>`. `null`: something else. */
export interface Called {
  readonly model: string;
  readonly method: string;
}

export function calledBy(path: string): Called | null {
  const bare = pathOf(path);
  const colon = bare.lastIndexOf(":");
  if (!bare.startsWith(`${root}models/`) || colon === -1) return null;
  return { model: bare.slice(`${root}models/`.length, colon), method: bare.slice(colon + 1) };
}

/**
 * "Thought signatures" › Model behavior: Gemini 3 and later refuse a function call without its signature; the models
 * before let it pass, and so do those for images.
 */
export function mustSign(model: string): boolean {
  return /^gemini-/.test(model) && !/^gemini-[12](?:[.-]|$)/.test(model) && !model.includes("-image");
}
