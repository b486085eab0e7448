import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";
import { root, runStep } from "./steps.ts";

const nodeEntries = [
  "index",
  "entry-store",
  "entry-postgres",
  "entry-conformance",
  "entry-testing",
  "entry-langgraph",
  "entry-claude-agent-sdk",
  "entry-ai-sdk",
  "entry-openai-agents",
];
/** Browsers load this entry point, so it shares no chunk with code that imports Node modules. */
const browserEntry = "entry-client";
/** Evaluated before everything else, in its own chunk. */
const nodeCheck = "check-node";
const isNodeCheck = /check-node\.ts$/;
const external = /^[^./\0]/;
/** What most programs load: the library, a store, an instance, every command on a folder, and a gateway. */
const mainParts = ["index", "entry-store", "app", "cli/connection/with-calls", "app/gateway"];

/** Bundles the published package: code and declarations, with dependencies left as imports. */
export async function bundlePackage(folder: string): Promise<void> {
  await bundleCode(folder);
  await bundleDeclarations(folder);
}

/** Bundles everything in the package that runs. */
export async function bundleCode(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  await bundle(
    {
      ...Object.fromEntries(nodeEntries.map((name) => [name, source(name)])),
      cli: source("cli/main"),
      // Started as a worker thread by its file name, in the same folder as the chunk that starts it.
      "chunks/index-worker": source("store/files/index-worker"),
    },
    folder,
  );
  await bundle({ [browserEntry]: source(browserEntry) }, folder);
}

function source(name: string): string {
  return join(root, "src", `${name}.ts`);
}

async function bundle(input: Record<string, string>, dir: string): Promise<void> {
  const entries = Object.values(input);
  const isForNode = entries.includes(source("index"));
  const shared = new SharedChunks(isForNode ? mainParts.map(source) : [], entries);
  const build = await rolldown({
    input,
    platform: "node",
    external,
    plugins: [{ name: "shared-chunks", moduleParsed: (file) => shared.add(file) }],
    // A module that is loaded lazily in one location can be loaded eagerly in another.
    checks: { ineffectiveDynamicImport: false },
    // Required by `includeDependenciesRecursively: false`. The entry points still export only what their source
    // exports.
    preserveEntrySignatures: "allow-extension",
    treeshake: { moduleSideEffects: [{ test: isNodeCheck, sideEffects: true }] },
    logLevel: "warn",
  });
  await build.write({
    dir,
    format: "esm",
    comments: false,
    // Names and lines are preserved so that stack traces stay readable.
    minify: { compress: true, mangle: false, codegen: false },
    entryFileNames: "[name].js",
    chunkFileNames: ({ name }) => (name === nodeCheck ? "chunks/[name].js" : "chunks/[name]-[hash].js"),
    // The chunks of all other modules follow from their imports, so importing one part does not load the others.
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        { name: nodeCheck, test: isNodeCheck },
        { name: (id) => shared.nameOf(id), debugName: "shared" },
      ],
    },
  });
  await build.close();
}

/**
 * Puts the modules that the same main parts import into one chunk, because loading many small files makes every command
 * slower. A module that another entry point also imports has a separate chunk, so that the other entry point does not
 * load the rest.
 */
class SharedChunks {
  readonly #parts: readonly string[];
  readonly #entries: readonly string[];
  readonly #imports = new Map<string, readonly string[]>();
  #names: Map<string, string> | null = null;

  constructor(parts: readonly string[], entries: readonly string[]) {
    this.#parts = parts;
    this.#entries = entries.filter((entry) => !parts.includes(entry));
  }

  add({ id, importedIds }: { readonly id: string; readonly importedIds: readonly string[] }): void {
    this.#imports.set(id, importedIds);
  }

  nameOf(id: string): string | null {
    this.#names ??= this.#findNames();
    return this.#names.get(id) ?? null;
  }

  #findNames(): Map<string, string> {
    const names = new Map<string, string>();
    const renamed = this.#parts.filter((part) => !this.#imports.has(part));
    if (renamed.length > 0)
      throw new Error(`mainParts names files that are not bundled: ${renamed.join(", ")}`);
    for (const part of this.#parts)
      for (const id of this.#reach([part]))
        names.set(id, `${names.has(id) ? `${names.get(id)}-` : ""}${basename(part, ".ts")}`);
    for (const id of this.#reach(this.#entries)) if (names.has(id)) names.set(id, `${names.get(id)}-shared`);
    return names;
  }

  /** Returns everything that these modules import, directly or indirectly, but not lazily. */
  #reach(roots: readonly string[]): ReadonlySet<string> {
    const reached = new Set(roots);
    for (const id of reached) for (const imported of this.#imports.get(id) ?? []) reached.add(imported);
    return reached;
  }
}

async function bundleDeclarations(folder: string): Promise<void> {
  const declarations = mkdtempSync(join(tmpdir(), "skein-declarations-"));
  try {
    await runStep("declarations", "tsc", ["--project", "tsconfig.build.json", "--outDir", declarations]);
    const entries = [...nodeEntries, browserEntry];
    const build = await rolldown({
      input: Object.fromEntries(entries.map((name) => [name, join(declarations, "src", `${name}.d.ts`)])),
      plugins: [dts({ dtsInput: true })],
      external,
      checks: { pluginTimings: false },
      logLevel: "warn",
    });
    await build.write({
      dir: folder,
      format: "esm",
      entryFileNames: "[name].d.ts",
      chunkFileNames: "chunks/[name].d.ts",
    });
    await build.close();
  } finally {
    rmSync(declarations, { recursive: true, force: true });
  }
}
