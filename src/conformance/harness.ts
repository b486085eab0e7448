import type { Store } from "../store/contract.ts";

/** A store under test, and ways to interrupt it. */
export interface StoreUnderTest {
  readonly store: Store;
  /** Closes the store and opens it again. */
  reopen?(): Promise<Store>;
  /** Simulates a power failure without closing the store, and opens the data that would have survived on disk. */
  powerCut?(): Promise<Store>;
  dispose?(): Promise<void>;
}

/** Creates stores for the kit and lists their capabilities. */
export interface StoreHarness {
  /** Creates an empty store for each case. */
  create(): Promise<StoreUnderTest>;
  /** The capabilities of the stores that `create` returns. Rules that need a missing capability are skipped. */
  readonly capabilities: { readonly reopen: boolean; readonly powerCut: boolean };
  /** Rules that the store does not implement, each with a reason. An unknown rule is an error. */
  readonly declines?: readonly { readonly rule: string; readonly because: string }[];
}

/** One requirement for a store. `run` throws if it is not met. */
export interface Case {
  /** The rule in SPEC.md. */
  readonly id: string;
  readonly title: string;
  run(): Promise<void>;
}

/** A case that is not bound to a store yet. */
export interface CaseTemplate {
  readonly id: string;
  readonly title: string;
  readonly needs?: "reopen" | "powerCut";
  run(trial: Trial): Promise<void>;
}

/** The store for a case, and the interruptions listed in its `needs`. */
interface Trial {
  readonly store: Store;
  reopen(): Promise<Store>;
  powerCut(): Promise<Store>;
}

export function bindCases(templates: readonly CaseTemplate[], harness: StoreHarness): Case[] {
  const declined = new Set((harness.declines ?? []).map(({ rule }) => rule));
  for (const rule of declined) {
    if (!templates.some(({ id }) => id === rule))
      throw new Error(`the harness declines ${rule}, which is not one of the kit's rules`);
  }
  return templates
    .filter(({ id, needs }) => !declined.has(id) && (needs === undefined || harness.capabilities[needs]))
    .map((template) => ({ id: template.id, title: template.title, run: () => runCase(template, harness) }));
}

async function runCase(template: CaseTemplate, harness: StoreHarness): Promise<void> {
  const tried = await harness.create();
  const able = (act: (() => Promise<Store>) | undefined, name: string) => () => {
    if (act === undefined) throw new Error(`the harness declares ${name} but does not provide it`);
    return act();
  };
  try {
    await template.run({
      store: tried.store,
      reopen: able(tried.reopen?.bind(tried), "reopen"),
      powerCut: able(tried.powerCut?.bind(tried), "powerCut"),
    });
  } finally {
    await tried.dispose?.();
  }
}
