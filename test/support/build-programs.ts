// Bundles `skein` and the programs that tests start, once for all test files. A process that loads 1,800 modules takes
// three times as long to start as one that loads a bundle, and the suite starts hundreds of processes.
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { CodeSplittingGroup, Plugin, PluginContext } from "rolldown";
import { rolldown } from "rolldown";
import { build } from "vite";

const root = join(import.meta.dirname, "../..");

const programs = [
  "acp-kill-agent",
  "acp-kill-child",
  "acp-kill-partner",
  "acp/scripted-agent",
  "ai-sdk-child",
  "app-child",
  "appender",
  "approval-child",
  "claim-child",
  "crash-child",
  "family-child",
  "family-partner",
  "kill-child",
  "killed-tool-child",
  "mcp-kill-server",
  "mcp-stdio",
  "pause-child",
  "signal-child",
  "soak-child",
];

export default async function buildPrograms(): Promise<() => void> {
  // Inside node_modules, so that packages that are not bundled are found. Separate for each process, so that two runs
  // do not collide.
  const folder = join(root, "node_modules/.cache", `test-programs-${process.pid}`);
  // Bundled separately, because shared code would be split into many more files, which take longer to load.
  await bundle(join(folder, "dist"), { cli: join(root, "src/cli/main.ts") });
  const inSupport = (name: string) => [name, join(root, "test/support", `${name}.ts`)];
  await bundle(join(folder, "support"), Object.fromEntries(programs.map(inSupport)));
  await buildConsole(join(folder, "dist/console"));
  mkdirSync(join(folder, "bin"), { recursive: true });
  for (const file of ["package.json", "bin/skein.mjs"]) cpSync(join(root, file), join(folder, file));
  process.env.SKEIN_TEST_PROGRAMS = folder;
  // Stored with the programs, because cache entries are keyed by path. In a permanent folder, every run would leave its
  // own entries behind.
  process.env.NODE_COMPILE_CACHE = join(folder, "compiled");
  return () => rmSync(folder, { recursive: true, force: true });
}

/** As in the package, the gateway serves the console from the folder that contains its own code. */
async function buildConsole(outDir: string): Promise<void> {
  const { NODE_ENV } = process.env;
  // With "test", React would be built for development.
  process.env.NODE_ENV = "production";
  await build({ configFile: join(root, "console/vite.config.ts"), logLevel: "error", build: { outDir } });
  process.env.NODE_ENV = NODE_ENV;
}

/**
 * The modules that most processes load, in one chunk each, because linking a hundred small chunks takes a third of the
 * startup time. A module belongs to the first chunk whose roots import it statically. Packages that only some commands
 * need stay in separate chunks.
 */
const chunkRoots: Readonly<Record<string, readonly string[]>> = {
  main: ["cli/main"],
  folder: ["app", "create-skein", "cli/connection/with-folder", "config/load"],
  turn: [
    "agents/loop/model-call",
    "agents/rehearsal/rehearsal-model",
    "sessions/turn",
    "tools/all",
    "tools/session-tool",
  ],
  gateway: ["cli/start", "app/gateway", "gateway/server/router"],
};

async function bundle(dir: string, entries: Readonly<Record<string, string>>): Promise<void> {
  const chunkOf = new Map<string, string>();
  await write(dir, entries, {
    plugins: [{ name: "chunks", buildEnd: assignChunks(chunkOf) }],
    groups: Object.keys(chunkRoots).map((name) => ({ name, test: (id) => chunkOf.get(id) === name })),
  });
  // In a separate chunk. It is started by name from the folder of the chunk that starts it, and no other module is
  // allowed to load it.
  await write(dir, { "chunks/index-worker": join(root, "src/store/files/index-worker.ts") });
}

function assignChunks(chunkOf: Map<string, string>) {
  return function assign(this: PluginContext): void {
    for (const [chunk, roots] of Object.entries(chunkRoots)) {
      const open = roots.map((name) => join(root, "src", `${name}.ts`));
      for (let id = open.pop(); id !== undefined; id = open.pop()) {
        const found = chunkOf.has(id) ? null : this.getModuleInfo(id);
        if (found === null) continue;
        chunkOf.set(id, chunk);
        open.push(...found.importedIds);
      }
    }
  };
}

async function write(
  dir: string,
  input: Readonly<Record<string, string>>,
  { plugins = [], groups = [] }: { plugins?: Plugin[]; groups?: CodeSplittingGroup[] } = {},
): Promise<void> {
  const bundled = await rolldown({
    input,
    plugins,
    platform: "node",
    external: ["sharp", /^@opentelemetry\//],
    checks: { ineffectiveDynamicImport: false },
    logLevel: "warn",
  });
  await bundled.write({
    dir,
    format: "esm",
    minify: { compress: false, mangle: false, codegen: true },
    codeSplitting: { groups },
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
  });
  await bundled.close();
}
