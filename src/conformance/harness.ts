import type { Store } from "../store/contract.ts";

/** A store to be tried, and what can be done to it. */
export interface StoreUnderTest {
  readonly store: Store;
  /** Closes it and opens what it kept. */
  reopen?(): Promise<Store>;
  /** Pulls the plug without closing, and opens what a disk would still have. */
  powerCut?(): Promise<Store>;
  dispose?(): Promise<void>;
}

/** How the kit gets at a store. */
export interface StoreHarness {
  /** A store of its own for each case, empty. */
  create(): Promise<StoreUnderTest>;
  /** Which of the abilities `create` gives. What is false here leaves out the rules that need it. */
  readonly capabilities: { readonly reopen: boolean; readonly powerCut: boolean };
  /** Rules that the store does not follow, each with its reason. An unknown rule is an error. */
  readonly declines?: readonly { readonly rule: string; readonly because: string }[];
}

/** One thing that a store must do. `run` throws when it does not. */
export interface Case {
  /** The rule in SPEC.md. */
  readonly id: string;
  readonly title: string;
  run(): Promise<void>;
}

/** A case before it has a store. */
export interface CaseTemplate {
  readonly id: string;
  readonly title: string;
  readonly needs?: "reopen" | "powerCut";
  run(trial: Trial): Promise<void>;
}

/** What a case is given: the store, and the ways to interrupt it that its `needs` promise. */
interface Trial {
  readonly store: Store;
  reopen(): Promise<Store>;
  powerCut(): Promise<Store>;
}

/** Binds templates to a harness. */
export function bindCases(templates: readonly CaseTemplate[], harness: StoreHarness): Case[] {
  const declined = new Set((harness.declines ?? []).map(({ rule }) => rule));
  for (const rule of declined) {
    if (!templates.some(({ id }) => id === rule))
      throw new Error(`declines names ${rule}, which is no rule of the kit`);
  }
  return templates
    .filter(({ id, needs }) => !declined.has(id) && (needs === undefined || harness.capabilities[needs]))
    .map((template) => ({ id: template.id, title: template.title, run: () => runCase(template, harness) }));
}

async function runCase(template: CaseTemplate, harness: StoreHarness): Promise<void> {
  const tried = await harness.create();
  const able = (act: (() => Promise<Store>) | undefined, name: string) => () => {
    if (act === undefined) throw new Error(`the harness promises ${name} but does not give it`);
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
