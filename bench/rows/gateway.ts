import type { Job } from "../side.ts";
import type { Workshop } from "../workshop.ts";
import { listSizes, manySessions } from "./list.ts";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

/** The approximate size of the response bodies. The bare route returns the same number of bytes. */
const cases = [
  { name: "list, HTTP", kind: "list", over: "http", bytes: 33_200 },
  { name: "list, WebSocket", kind: "list", over: "socket", bytes: 33_200 },
  { name: "list during writes, HTTP", kind: "changing list", over: "http", bytes: 33_200 },
  { name: "history, HTTP", kind: "history", over: "http", bytes: 1070 },
  { name: "history, WebSocket", kind: "history", over: "socket", bytes: 1070 },
  { name: "any history, HTTP", kind: "any history", over: "http", bytes: 1070 },
] as const;

function measureCase(shop: Workshop, { name, kind, over, bytes }: (typeof cases)[number]) {
  const sessions = shop.size(listSizes["100k"]);
  const gateway = async (): Promise<Job> => ({
    folder: await manySessions(shop, "100k"),
    kind,
    over,
    sessions,
  });
  // A bare route is always called over HTTP, regardless of the gateway's transport.
  const bareRoute = (folder: string): Job => ({ folder, kind, over: "http", sessions, payload: bytes });
  const jobs = { gateway, bareRoute };
  return shop.measure({ name, size: sessions, act: "ask", runs: shop.runs(3), jobs });
}

export const row: Row = {
  name: "gateway",
  title:
    "The gateway: the first 100 of 100,000 sessions, and the history of frequently read and of arbitrary sessions",
  measure: (shop) => inTurn(cases, (each) => measureCase(shop, each)),
};
