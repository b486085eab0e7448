import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { About, Acts, Figures, Job } from "../side.ts";
import { bytesIn, textLength, timed } from "../side.ts";
import { stockOfTexts } from "../texts.ts";
import { load as loadPackage } from "./load.ts";

export const about: About = {
  name: "Cloudflare Sessions",
  packages: ["agents", "miniflare", "esbuild"],
  durability: "workerd's SQLite: synced once per request, before it is answered",
};

/** A conversation as in the package's own documentation. One request does many appends inside the object. */
const worker = `
import { DurableObject } from "cloudflare:workers";
import { Lifecycle } from "agents/lifecycle";
import { Sessions } from "agents/sessions";
export class Conversation extends DurableObject {
  sessions = new Sessions();
  lifecycle = Lifecycle.install(this).use(this.sessions);
  session = this.sessions.session();
  async fetch(request) {
    const { act, from, texts } = await request.json();
    let count = 0;
    if (act === "append")
      for (const text of texts) {
        const role = (from + count) % 2 === 0 ? "user" : "assistant";
        await this.session.appendMessage({ id: "m" + (from + count++), role, parts: [{ type: "text", text }] });
      }
    if (act === "load") for await (const _ of this.session.history()) count++;
    if (act === "last") for await (const _ of this.session.history({ newestFirst: true })) if (++count === 20) break;
    return Response.json({ count });
  }
}
export default {
  fetch: (request, env) => env.OBJECTS.get(env.OBJECTS.idFromName(new URL(request.url).pathname)).fetch(request),
};`;

interface Miniflare {
  dispatchFetch(url: string, init: object): Promise<{ status: number; text(): Promise<string> }>;
  dispose(): Promise<void>;
}

interface Esbuild {
  build(options: object): Promise<{ outputFiles: readonly { text: string }[] }>;
}

type Call = (session: string, order: object) => Promise<number>;

export const acts: Acts = { append, load, page, disk };

async function withObjects<T>(folder: string, act: (call: Call) => Promise<T>): Promise<T> {
  mkdirSync(folder, { recursive: true });
  const { build } = await loadPackage<Esbuild>("esbuild");
  const { Miniflare } = await loadPackage<{ Miniflare: new (options: object) => Miniflare }>("miniflare");
  const bundle = await build({
    stdin: { contents: worker, resolveDir: fileURLToPath(new URL(".", import.meta.url)), loader: "js" },
    bundle: true,
    write: false,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["workerd", "worker", "import"],
    external: ["cloudflare:*", "node:*"],
  });
  const runtime = new Miniflare({
    modules: true,
    script: bundle.outputFiles[0]?.text,
    compatibilityDate: "2026-06-01",
    compatibilityFlags: ["nodejs_compat"],
    durableObjects: { OBJECTS: { className: "Conversation", useSQLite: true } },
    durableObjectsPersist: folder,
  });
  try {
    return await act(async (session, order) => {
      const init = { method: "POST", body: JSON.stringify(order) };
      const response = await runtime.dispatchFetch(`http://bench/${session}`, init);
      const text = await response.text();
      if (response.status !== 200) throw new Error(text);
      return (JSON.parse(text) as { count: number }).count;
    });
  } finally {
    await runtime.dispose();
  }
}

/** Appends one message at a time inside the object. One HTTP request per append would measure HTTP. */
async function append({ folder, count = 1, warmUp = 500 }: Job): Promise<Figures> {
  const textOf = stockOfTexts(textLength);
  const perRequest = 500;
  return withObjects(folder, async (call) => {
    const fill = async (session: string, amount: number) => {
      for (let from = 0; from < amount; from += perRequest) {
        const some = Math.min(perRequest, amount - from);
        const texts = Array.from({ length: some }, (_, index) => textOf(from + index));
        await call(session, { act: "append", from, texts });
      }
    };
    await fill("warm-up", warmUp);
    const ms = await timed(() => fill("bench-0", count));
    return { ms, perSecond: count / (ms / 1000), usPerMessage: (ms * 1000) / count };
  });
}

async function load({ folder }: Job): Promise<Figures> {
  return withObjects(folder, async (call) => {
    await call("another", { act: "load" });
    let messages = 0;
    const ms = await timed(async () => {
      messages = await call("bench-0", { act: "load" });
    });
    return { ms, messages };
  });
}

async function page({ folder }: Job): Promise<Figures> {
  return withObjects(folder, async (call) => {
    const firstMs = await timed(() => call("bench-0", { act: "last" }));
    return { firstMs, lastMs: await timed(() => call("bench-0", { act: "last" })) };
  });
}

async function disk({ folder, count = 1 }: Job): Promise<Figures> {
  const bytes = bytesIn(folder);
  return { bytes, ratio: bytes / (count * textLength) };
}
