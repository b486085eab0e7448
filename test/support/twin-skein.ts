import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Scripted, TemporaryFolder, Twin } from "../../src/entry-testing.ts";
import { startTwin, temporaryFolder } from "../../src/entry-testing.ts";
import type {
  AgentSpec,
  EntryDraft,
  MessageDraft,
  Skein,
  SkeinEvent,
  SkeinOptions,
} from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import type { TwinProvider } from "./twin-providers.ts";
import { providers } from "./twin-providers.ts";

/** A Skein instance whose agent `main` uses a provider's twin, configured by a `skein.yaml`. */
export interface TwinSkein {
  readonly skein: Skein;
  readonly twin: Twin;
  readonly dir: string;
  readonly events: SkeinEvent[];
  /** Appends entries to the session `trip`. The first call creates the session. */
  append(...drafts: (EntryDraft | MessageDraft)[]): Promise<void>;
  send(text: string): Promise<string>;
  /** Returns the body of a request. A negative index counts from the last request. */
  body(at?: number): Record<string, unknown>;
}

export interface TwinSkeinOptions {
  readonly agent?: Partial<AgentSpec>;
  readonly replies?: readonly Scripted[];
  /** YAML to add to the provider's settings. */
  readonly provider?: string;
  /** YAML to add next to `models`. */
  readonly config?: string;
  readonly options?: Partial<SkeinOptions>;
  /** The provider's name in the configuration. Defaults to the twin's own name. */
  readonly name?: string;
  readonly model?: string;
}

export const sessionId = "trip";
const opened: { skein: Skein; twin: Twin; folder: TemporaryFolder }[] = [];

export const providerOf = (api: TwinProvider["api"]): TwinProvider =>
  providers.find((each) => each.api === api) as TwinProvider;

export async function openTwinSkein(
  api: TwinProvider["api"],
  { agent, replies = [], provider = "", config = "", options = {}, ...given }: TwinSkeinOptions = {},
): Promise<TwinSkein> {
  const usual = providerOf(api);
  const { name = usual.provider, model = usual.model } = given;
  const twin = await startTwin({ api, replies });
  const folder = temporaryFolder("skein-twin-");
  const file = join(folder.path, "skein.yaml");
  const settings = `{ apiKey: any, baseUrl: "${twin.url}"${provider === "" ? "" : `, ${provider}`} }`;
  writeFileSync(file, `models: { providers: { ${name}: ${settings} } }\n${config}`);
  const skein = await createSkein({
    dir: join(folder.path, "root"),
    config: file,
    env: {},
    agents: [defineAgent({ id: "main", model: `${name}/${model}`, ...agent })],
    quiet: true,
    ...options,
  });
  opened.push({ skein, twin, folder });
  const events: SkeinEvent[] = [];
  skein.subscribe((event) => events.push(event));
  const scope = { agentId: "main" };
  return {
    skein,
    twin,
    dir: join(folder.path, "root"),
    events,
    append: async (...drafts) => {
      const { sessions } = skein.store;
      const key = `agent:main:session:${sessionId}`;
      if ((await sessions.get(scope, sessionId)) === null)
        await sessions.create(scope, { key, sessionId, cwd: folder.path });
      const items = drafts.map((draft) => ({
        draft: "role" in draft ? ({ type: "message", message: draft } as const) : draft,
      }));
      await sessions.append(scope, sessionId, items);
    },
    send: async (text) => (await skein.session({ sessionId }).send(text).result).reply,
    body: (at = -1) => twin.requests.at(at)?.body as Record<string, unknown>,
  };
}

/** For use in afterEach. */
export async function closeTwinSkeins(): Promise<void> {
  for (const { skein, twin, folder } of opened.splice(0).toReversed()) {
    await skein.close({ graceMs: 0 });
    await twin.close();
    folder.remove();
  }
}
