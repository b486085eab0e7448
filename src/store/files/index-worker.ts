import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { createIdSource } from "../../core/ids.ts";
import { diskInPlace } from "./disk.ts";
import { IndexDb } from "./index-db.ts";
import type { ServiceCall } from "./index-service.ts";
import { IndexInPlace, serviceCalls } from "./index-service.ts";
import type { Answer, ThreadPlaces } from "./index-thread.ts";
import { problemOf } from "./index-thread.ts";
import { indexDbName, workDbName } from "./layout.ts";
import { WorkDb } from "./work-db.ts";

/** The index's worker thread. Handles calls one at a time. */

const { root, databases, identity } = workerData as ThreadPlaces;
const work = new WorkDb(join(databases, workDbName), { mustExist: true });
if (work.ledger.identity !== identity) throw new Error(`${workDbName} was moved or deleted`);
const index = new IndexDb(join(databases, indexDbName), () => work.ledger.checkInPlace());
work.registerIndex(index.identity, index.isEmpty());
const chunkBytes = 4 * 1024 * 1024;
const newToken = createIdSource();
const service = new IndexInPlace({ work, index, disk: diskInPlace(work.ledger), root, chunkBytes, newToken });

let queue = Promise.resolve();
parentPort?.on("message", (call: Call) => {
  queue = queue.then(async () => parentPort?.postMessage(await answer(call)));
});

interface Call {
  readonly id: number;
  readonly name: ServiceCall;
  readonly args: unknown[];
}

async function answer({ id, name, args }: Call): Promise<Answer> {
  try {
    if (!serviceCalls.includes(name)) throw new Error(`there is no call named ${name}`);
    const method = service[name] as (...values: unknown[]) => Promise<unknown>;
    const result = await method.apply(service, args);
    if (name === "close") {
      work.close();
      index.close();
    }
    return { id, result };
  } catch (error) {
    return { id, problem: problemOf(error) };
  }
}
