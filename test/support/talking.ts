import { redactorOf } from "../../src/app/redaction.ts";
import { loadConfig } from "../../src/config/load.ts";
import { findProblems } from "../../src/core/check-schema.ts";
import type { Principal } from "../../src/gateway/auth/principal.ts";
import { Tokens } from "../../src/gateway/auth/tokens.ts";
import type { MethodApp } from "../../src/gateway/methods/dispatch.ts";
import type { SkeinMethod } from "../../src/gateway/methods/handlers.ts";
import { skeinHandlers } from "../../src/gateway/methods/handlers.ts";
import { localCalls, localPrincipal } from "../../src/gateway/methods/local-calls.ts";
import type { Skein } from "../../src/index.ts";
import type { Calls } from "../../src/protocol/calls.ts";
import { methodTable } from "../../src/protocol/method-table.ts";
import type { RunSkeinOptions } from "./run-skein.ts";
import { openRunsInside } from "./run-skein-inside.ts";
import { newFolder } from "./skein.ts";

/** A secret in a format that every redactor recognizes. It was never real. */
export const secret = `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`;

const person = (user: string): Principal => ({
  tokenId: `token-${user}`,
  name: `${user}'s phone`,
  scopes: ["read", "write", "tools"],
  user,
  expiresAt: null,
});
export const ann = person("ann");
export const bob = person("bob");
/** Can see secrets but does not act for another user. */
export const annAdmin: Principal = { ...ann, scopes: ["read", "write", "tools", "admin"] };

export interface Talking {
  readonly skein: Skein;
  readonly deps: MethodApp;
  readonly dir: string;
  /** Calls methods on behalf of a principal. Every payload is checked against its method's schema. */
  as(principal?: Principal): Calls<SkeinMethod>;
}

const opened: Skein[] = [];

/** A Skein instance on a real folder, with a scripted model, and its methods. */
export async function openTalking({ dir = newFolder(), ...given }: RunSkeinOptions): Promise<Talking> {
  const { skein, inside } = await openRunsInside({ dir, ...given });
  opened.push(skein);
  const loaded = await loadConfig({ cwd: dir, root: dir, env: {} });
  const tokens = new Tokens(inside.store.work, { clock: inside.clock });
  const deps = { ...inside, loaded, config: loaded.config, redactor: redactorOf(loaded), skein, tokens };
  const handlers = skeinHandlers(deps);
  return { skein, deps, dir, as: (principal = localPrincipal) => checked(localCalls(handlers, principal)) };
}

/** For use in afterEach, before the folders are removed. */
export async function closeTalking(): Promise<void> {
  await Promise.all(opened.splice(0).map((skein) => skein.close({ graceMs: 0 })));
}

function checked(calls: Calls<SkeinMethod>): Calls<SkeinMethod> {
  return {
    call: async (method, params, options) => {
      const payload = await calls.call(method, params, options);
      const mistakes = findProblems(methodTable[method].result, JSON.parse(JSON.stringify(payload)), 5);
      if (mistakes.length > 0) throw new Error(`${method}: ${JSON.stringify(mistakes)}`);
      return payload;
    },
  };
}

/** Returns a call's error. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    const { code, wire } = error as { readonly code?: string; readonly wire?: { readonly code: string } };
    return code ?? wire?.code ?? String(error);
  }
  return "none";
}
