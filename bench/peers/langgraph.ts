import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { About, Acts, Figures, Job } from "../side.ts";
import { bytesIn, Latencies, textLength, timed } from "../side.ts";
import { stockOfTexts } from "../texts.ts";
import { load as loadPackage } from "./load.ts";

export const about: About = {
  name: "LangGraph SQLite",
  packages: [
    "@langchain/langgraph-checkpoint-sqlite",
    "@langchain/langgraph",
    "@langchain/core",
    "better-sqlite3",
  ],
  durability: "WAL, synchronous=NORMAL: synced at checkpoints only",
  // Every step writes the whole state again.
  most: 500,
  isByStep: true,
};

interface Graph {
  updateState(config: object, values: object): Promise<unknown>;
  getState(config: object): Promise<{ values: { messages: readonly unknown[] } }>;
}

interface Builder {
  addNode(name: string, work: () => object): Builder;
  addEdge(from: string, to: string): Builder;
  compile(options: object): Graph;
}

interface LangGraph {
  StateGraph: new (state: unknown) => Builder;
  MessagesAnnotation: unknown;
  START: string;
}

interface PostgresPackage {
  PostgresSaver: { fromConnString(url: string): { setup(): Promise<void> } };
}

type HumanMessage = new (text: string) => object;

/** The same graph with its state in PostgreSQL. */
export const aboutPostgres: About = {
  ...about,
  name: "LangGraph Postgres",
  packages: ["@langchain/langgraph-checkpoint-postgres", "@langchain/langgraph", "@langchain/core"],
  durability: "committed, synced by the server",
};

export const acts: Acts = { append, load, disk, open: load };

async function saverFor({ folder, url }: Job): Promise<unknown> {
  if (url !== undefined) {
    const { PostgresSaver } = await loadPackage<PostgresPackage>("@langchain/langgraph-checkpoint-postgres");
    const saver = PostgresSaver.fromConnString(url);
    await saver.setup();
    return saver;
  }
  mkdirSync(folder, { recursive: true });
  const { SqliteSaver } = await loadPackage<{ SqliteSaver: { fromConnString(file: string): unknown } }>(
    "@langchain/langgraph-checkpoint-sqlite",
  );
  return SqliteSaver.fromConnString(join(folder, "graph.db"));
}

async function graphFor(job: Job): Promise<Graph> {
  const { StateGraph, MessagesAnnotation, START } = await loadPackage<LangGraph>("@langchain/langgraph");
  const checkpointer = await saverFor(job);
  return new StateGraph(MessagesAnnotation)
    .addNode("speak", () => ({ messages: [] }))
    .addEdge(START, "speak")
    .compile({ checkpointer });
}

const thread = (name: string) => ({ configurable: { thread_id: name } });

async function append(job: Job): Promise<Figures> {
  const { count = 1, batch = 1, warmUp = 20, sessions = 1 } = job;
  const graph = await graphFor(job);
  const latencies = new Latencies();
  const { HumanMessage } = await loadPackage<{ HumanMessage: HumanMessage }>("@langchain/core/messages");
  const textOf = stockOfTexts(textLength);
  const fill = async (name: string, amount: number) => {
    for (let from = 0; from < amount; from += batch) {
      const some = Math.min(batch, amount - from);
      const messages = Array.from({ length: some }, (_, index) => new HumanMessage(textOf(from + index)));
      await latencies.time(() => graph.updateState(thread(name), { messages }));
    }
  };
  await fill("warm-up", warmUp);
  const ms = await timed(() =>
    Promise.all(Array.from({ length: sessions }, (_, index) => fill(`bench-${index}`, count / sessions))),
  );
  const perCall = { p50Ms: latencies.at(0.5), p99Ms: latencies.at(0.99) };
  return { ms, perSecond: count / (ms / 1000), usPerMessage: (ms * 1000) / count, ...perCall };
}

async function load(job: Job): Promise<Figures> {
  const graph = await graphFor(job);
  let messages = 0;
  const ms = await timed(async () => {
    messages = (await graph.getState(thread("bench-0"))).values.messages.length;
  });
  return { ms, messages };
}

async function disk({ folder, count = 1 }: Job): Promise<Figures> {
  const bytes = bytesIn(folder);
  return { bytes, ratio: bytes / (count * textLength) };
}
