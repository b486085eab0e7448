import { shortHash } from "../core/short-hash.ts";
import type { TranscriptPolicy } from "./contract.ts";

type Form = TranscriptPolicy["toolCallIds"];

const longest = { strict: 40, strict9: 9, kept: 64 } as const;

/**
 * Gives each call of a request an id of its own in the form that a provider takes. What fits and is free stays; the
 * others depend only on their own id and on what came before, so that a longer conversation does not change them.
 */
export class CallIds {
  readonly #form: Form;
  readonly #taken = new Set<string>();
  /** How often an id had to be made anew, so that a thousand equal ones take a thousand tries, not a million. */
  readonly #turns = new Map<string, number>();

  constructor(form: Form) {
    this.#form = form;
  }

  isTaken(id: string): boolean {
    return this.#taken.has(id);
  }

  take(original: string): string {
    const id = this.#free(original);
    this.#taken.add(id);
    return id;
  }

  #free(original: string): string {
    const fitting = fitted(original, this.#form);
    if (fitting !== null && !this.#taken.has(fitting)) return fitting;
    for (let turn = this.#turns.get(original) ?? 0; ; turn++) {
      const id = hashed(original, turn, this.#form);
      if (this.#taken.has(id)) continue;
      this.#turns.set(original, turn + 1);
      return id;
    }
  }
}

/** The id itself or the nearest that has the form; `null`: only a hash will do. */
function fitted(id: string, form: Form): string | null {
  if (form === "strict9") return /^[A-Za-z0-9]{9}$/.test(id) ? id : null;
  if (form === "strict") {
    const clean = id.replace(/[^A-Za-z0-9_-]/g, "");
    return clean !== "" && clean.length <= longest.strict ? clean : null;
  }
  // pi keeps the id of the Responses API's item behind the call's own.
  const own = id.includes("|") ? id.slice(0, id.indexOf("|")) : id;
  return own !== "" && own.length <= longest.kept && own.isWellFormed() ? own : null;
}

function hashed(original: string, turn: number, form: Form): string {
  const digest = shortHash(`${turn} ${original}`);
  if (form !== "strict9") return `call_${digest}`;
  return BigInt(`0x${digest}`).toString(36).padStart(9, "0").slice(-9);
}
