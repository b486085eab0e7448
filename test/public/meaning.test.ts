import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import type { SkeinClient } from "../../src/entry-client.ts";
import type { Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein } from "../../src/index.ts";
import { emptyStore } from "../support/empty-store.ts";
import { newFolder } from "../support/skein.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

/** Words that mean the same have the same dimension. */
const meanings = [
  ["cat", "feline", "kitten"],
  ["boat", "ship", "vessel"],
  ["rent", "lease"],
];

function vectorOf(text: string): number[] {
  const words = text.toLowerCase().match(/[a-z]+/g) ?? [];
  return [0.01, ...meanings.map((same) => words.filter((word) => same.includes(word)).length)];
}

/** A provider of embeddings with OpenAI's API. */
class EmbeddingServer {
  readonly texts: string[] = [];
  isDown = false;
  readonly #server = createServer(async (request, response) => {
    const { input } = (await json(request)) as { readonly input: string[] };
    if (this.isDown) return void response.writeHead(400).end("{}");
    this.texts.push(...input);
    const data = input.map((text, index) => ({ object: "embedding", index, embedding: vectorOf(text) }));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ data, usage: { prompt_tokens: 1, total_tokens: 1 } }));
  });

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each.close();
});

interface World {
  readonly gateway: WholeGateway;
  readonly embeddings: EmbeddingServer;
}

async function openWorld(): Promise<World> {
  const embeddings = new EmbeddingServer();
  const baseUrl = await embeddings.listen();
  opened.push(embeddings);
  const gateway = await wholeGateway({
    config: `search: { embed: near/words }\nmodels: { providers: { near: { baseUrl: "${baseUrl}", apiKey: k } } }\n`,
  });
  opened.push(gateway);
  return { gateway, embeddings };
}

async function answer(client: SkeinClient, sessionKey: string, message: string): Promise<void> {
  const { runId } = await client.call("chat.send", { sessionKey, message, idempotencyKey: randomUUID() });
  await client.call("agent.wait", { runId });
}

/** Sends messages in sessions of their own, and waits until they have been embedded. */
async function say(
  { gateway, embeddings }: World,
  messages: Readonly<Record<string, string>>,
): Promise<void> {
  const client = await gateway.client();
  for (const [name, message] of Object.entries(messages)) {
    await answer(client, `agent:main:session:${name}`, message);
  }
  const texts = Object.values(messages);
  await soon(() => texts.filter((text) => !embeddings.texts.includes(text))).toEqual([]);
}

async function search({ gateway }: World, query: string, more: object = {}): Promise<string[]> {
  const client = await gateway.client();
  const { hits } = await client.call("sessions.search", { query, role: "user", ...more });
  return hits.map(({ snippet }) => snippet);
}

const quiet = { config: { defaults: { model: "rehearsal/basic" } } };

/** A model that is given in code. */
function embeddingModel(embed: (values: readonly string[]) => Promise<number[][]>) {
  return {
    specificationVersion: "v4" as const,
    provider: "near",
    modelId: "words",
    maxEmbeddingsPerCall: 2,
    supportsParallelCalls: false,
    doEmbed: async ({ values }: { readonly values: readonly string[] }) => ({
      embeddings: await embed(values),
      warnings: [],
    }),
  };
}

async function openWith(
  options: Pick<SkeinOptions, "report"> & { readonly dir: string },
  embed: ReturnType<typeof embeddingModel>,
): Promise<Skein> {
  return createSkein({ ...options, ...(await emptyStore(options)), ...quiet, search: { embed } });
}

async function find(skein: Skein, query: string): Promise<string> {
  return JSON.stringify(
    await skein.callTool("session_search", { query, role: "user" }, { sessionId: "pets" }),
  );
}

describe("a search with embeddings", () => {
  test("[SRE1] finds a message by its meaning as well as by its words", async () => {
    const world = await openWorld();
    await say(world, {
      pet: "Her kitten sleeps all day.",
      home: "The lease ends in May.",
      harbor: "Our vessel leaves at nine.",
    });
    await soon(() => search(world, "feline")).toEqual(expect.arrayContaining(["Her kitten sleeps all day."]));
    expect((await search(world, "feline"))[0]).toBe("Her kitten sleeps all day.");
    await soon(async () => (await search(world, "ship in May")).slice(0, 2).toSorted()).toEqual([
      "Our vessel leaves at nine.",
      "The lease ends in May.",
    ]);
    // A hit by words and by meaning is one hit.
    expect((await search(world, "kitten")).filter((hit) => hit.includes("kitten"))).toHaveLength(1);
  });

  test("[SRE1] keeps to its filters, quoted words and excluded words", async () => {
    const world = await openWorld();
    await say(world, { one: "A kitten is gray.", two: "A feline is white." });
    const both = expect.arrayContaining(["A kitten is gray.", "A feline is white."]);
    await soon(() => search(world, "cat")).toEqual(both);
    expect(await search(world, "cat -gray")).toEqual(["A feline is white."]);
    expect(await search(world, 'cat "is gray"')).toEqual(["A kitten is gray."]);
    expect(await search(world, "cat", { key: "agent:main:session:two" })).toEqual(["A feline is white."]);
    expect(await search(world, "cat", { bySession: true })).toHaveLength(2);
    expect(await search(world, "cat", { role: "summary" })).toEqual([]);
  });

  test("[SRE2] sends no secret to the model, and forgets deleted messages", async () => {
    const world = await openWorld();
    const secret = `ghp_${"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}`;
    const client = await world.gateway.client();
    const key = "agent:main:session:vault";
    await answer(client, key, `The kitten's key is ${secret}`);
    await soon(() => world.embeddings.texts.join("\n")).toContain("The kitten's key is");
    expect(world.embeddings.texts.join("\n")).not.toContain(secret);
    await soon(() => search(world, "feline")).toHaveLength(1);
    await client.call("sessions.delete", { key });
    expect(await search(world, "feline")).toEqual([]);
  });

  test("[SRE2] finds words while the model fails, and embeds what was written when it answers again", async () => {
    const embeddings = { isDown: true, texts: [] as string[] };
    const problems: unknown[] = [];
    const model = embeddingModel(async (values) => {
      if (embeddings.isDown) throw new Error("no embeddings today");
      embeddings.texts.push(...values);
      return values.map(vectorOf);
    });
    const dir = newFolder();
    const report = (error: unknown) => void problems.push(error);
    const skein = await openWith({ dir, report }, model);
    await skein.session({ sessionId: "pets" }).send("A kitten is gray.").result;
    expect(await find(skein, "gray kitten")).toContain("A kitten is gray.");
    expect(await find(skein, "feline")).not.toContain("kitten");
    expect(problems.map(String)).toEqual(["Error: search.embed: near/words failed"]);
    await skein.close();
    embeddings.isDown = false;
    const again = await openWith({ dir, report }, model);
    await soon(() => find(again, "feline")).toContain("A kitten is gray.");
    await again.close();
  });

  test("[SRE2] finds words while the model does not answer", async () => {
    const model = embeddingModel(() => new Promise(() => undefined));
    const skein = await openWith({ dir: newFolder(), report: () => undefined }, model);
    await skein.session({ sessionId: "pets" }).send("A kitten is gray.").result;
    expect(await find(skein, "gray kitten")).toContain("A kitten is gray.");
    await skein.close();
  });

  test("[SRE1] finds a message by its meaning in a fork of its session", async () => {
    const skein = await openWith(
      { dir: newFolder() },
      embeddingModel(async (values) => values.map(vectorOf)),
    );
    const session = skein.session({ sessionId: "pets" });
    await session.send("A kitten is gray.").result;
    const fork = await session.fork();
    const searchFork = () => skein.sessions.search({ query: "feline", key: fork.key, role: "user" });
    await soon(async () => (await searchFork()).hits).toMatchObject([{ snippet: "A kitten is gray." }]);
    await skein.close();
  });

  test("[SRE3] two processes that start together embed an earlier message once", async () => {
    const dir = newFolder();
    const before = await createSkein({ dir, ...(await emptyStore({ dir })), ...quiet });
    await before.session({ sessionId: "pets" }).send("A kitten is gray.").result;
    await before.close();
    const texts: string[] = [];
    const answered = Promise.withResolvers<void>();
    const model = embeddingModel(async (values) => {
      const isFirst = !texts.some((text) => text.includes("kitten"));
      texts.push(...values);
      if (isFirst && values.some((text) => text.includes("kitten"))) await answered.promise;
      return values.map(vectorOf);
    });
    const both = await Promise.all([openWith({ dir }, model), openWith({ dir }, model)]);
    await soon(() => texts.join("\n")).toContain("kitten");
    for (const [at, skein] of both.entries())
      await skein.session({ sessionId: `boat-${at}` }).send(`Ship ${at} has sailed.`).result;
    // The one that does not wait for the model has looked at what is left after it embedded its own message.
    await soon(() => texts.filter((text) => text.startsWith("Ship"))).toHaveLength(1);
    answered.resolve();
    await soon(() => texts.filter((text) => text.startsWith("Ship"))).toHaveLength(2);
    expect(texts.filter((text) => text === "A kitten is gray.")).toHaveLength(1);
    await Promise.all(both.map((skein) => skein.close()));
  });
});
