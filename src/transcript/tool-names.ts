import { shortHash } from "../core/short-hash.ts";
import type { Api } from "./contract.ts";

const longest = 64;
const hashLength = 8;
/** Characters that at least one provider accepts. A name with any other character cannot be sent. */
const sendable = /^[A-Za-z0-9_.:-]{1,128}$/;
const common = /^[A-Za-z0-9_-]{1,64}$/;

/** Whether a name can be sent, either unchanged or in an adapted form. */
export function isSendableToolName(name: string): boolean {
  return sendable.test(name);
}

/**
 * Maps tool names to names that a provider accepts. Valid names are kept, and other names change as little as possible.
 * Two offered tools never share a name. The mapping depends only on the offered names, so it is the same for all
 * requests in a conversation.
 */
export class ToolNames {
  readonly #api: Api;
  readonly #sent = new Map<string, string>();
  readonly #original = new Map<string, string>();

  constructor(offered: readonly string[], api: Api) {
    this.#api = api;
    const isValid = (name: string) => fitName(name, api) === name;
    for (const name of offered.filter(isValid)) this.#add(name, name);
    for (const name of offered.filter((each) => !isValid(each))) {
      const fitting = fitName(name, api);
      this.#add(name, this.#original.has(fitting) ? appendHash(fitting, name) : fitting);
    }
  }

  /** Returns the name to send to the provider, even for a tool that is not offered now. */
  sent(name: string): string {
    return this.#sent.get(name) ?? fitName(name, this.#api);
  }

  original(sent: string): string {
    return this.#original.get(sent) ?? sent;
  }

  #add(name: string, sent: string): void {
    this.#sent.set(name, sent);
    this.#original.set(sent, name);
  }
}

/**
 * Returns a name that the provider accepts. A valid name is unchanged, so applying this twice has no further effect.
 */
function fitName(name: string, api: Api): string {
  const isTaken = common.test(name) && !isInherited(name);
  const fitting = isTaken ? name : appendHash(name.replace(/[^A-Za-z0-9_-]/g, "_"), name);
  if (api !== "google-generative-ai" || /^[A-Za-z_]/.test(fitting)) return fitting;
  const started = `_${fitting}`;
  return started.length <= longest ? started : appendHash(started, name);
}

/**
 * Whether every object inherits a property with this name. Provider packages look up tool names in plain objects, where
 * they would find that property.
 */
function isInherited(name: string): boolean {
  return name in {};
}

function appendHash(clean: string, name: string): string {
  return `${clean.slice(0, longest - hashLength - 1)}_${shortHash(name).slice(0, hashLength)}`;
}
