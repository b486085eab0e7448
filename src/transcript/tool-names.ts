import { shortHash } from "../core/short-hash.ts";
import type { Api } from "./contract.ts";

const longest = 64;
const hashLength = 8;
/** Characters that at least one provider takes. A name with any other can never be sent. */
const sendable = /^[A-Za-z0-9_.:-]{1,128}$/;
const common = /^[A-Za-z0-9_-]{1,64}$/;

/** Whether a name can be sent to a provider, if need be in another form. */
export function isSendableToolName(name: string): boolean {
  return sendable.test(name);
}

/**
 * The names under which a provider gets tools. A name that it takes stays; the others are changed as little as possible,
 * and two offered tools never get the same name. The result depends only on the offered names, so that requests of one
 * conversation agree with each other.
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

  /** The name as the provider gets it; also of a tool that is not offered now. */
  sent(name: string): string {
    return this.#sent.get(name) ?? fitName(name, this.#api);
  }

  /** The tool that a provider means by a name. */
  original(sent: string): string {
    return this.#original.get(sent) ?? sent;
  }

  #add(name: string, sent: string): void {
    this.#sent.set(name, sent);
    this.#original.set(sent, name);
  }
}

/** A valid name stays as it is, so that fitting a fitted name changes nothing. */
function fitName(name: string, api: Api): string {
  const isTaken = common.test(name) && !isInherited(name);
  const fitting = isTaken ? name : appendHash(name.replace(/[^A-Za-z0-9_-]/g, "_"), name);
  if (api !== "google-generative-ai" || /^[A-Za-z_]/.test(fitting)) return fitting;
  const started = `_${fitting}`;
  return started.length <= longest ? started : appendHash(started, name);
}

/** Provider packages look names up in plain objects, where these would find what every object has. */
function isInherited(name: string): boolean {
  return name in {};
}

function appendHash(clean: string, name: string): string {
  return `${clean.slice(0, longest - hashLength - 1)}_${shortHash(name).slice(0, hashLength)}`;
}
