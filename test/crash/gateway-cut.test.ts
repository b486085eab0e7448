import { afterEach, describe, expect, test } from "vitest";
import { Talker } from "../support/gateway-clients.ts";
import { expectNothingLost, hasHeardAll } from "../support/gateway-clients-count.ts";
import { CuttingProxy } from "../support/gateway-clients-proxy.ts";
import { runChance } from "../support/run-seed.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let gateway: WholeGateway | null = null;
let proxy: CuttingProxy | null = null;
let talkers: Talker[] = [];
const chance = runChance();

afterEach(async () => {
  await Promise.all(talkers.splice(0).map((talker) => talker.close()));
  await proxy?.close();
  await gateway?.close();
  [gateway, proxy] = [null, null];
});

describe("clients on an unreliable connection", () => {
  test("[GKL1] connections cut at random bytes, in handshakes and frames: nothing is lost or duplicated", async () => {
    const open = await wholeGateway();
    gateway = open;
    const line = await CuttingProxy.to(open.url, () => Number.POSITIVE_INFINITY);
    proxy = line;
    const token = await open.token({ scopes: ["read", "write"], userId: "ann" });
    talkers = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        Talker.connect({ url: line.url, name: `p${index}`, token, reconnect: { minMs: 1, maxMs: 20 } }),
      ),
    );
    await Promise.all(talkers.map((talker) => talker.say()));
    // A handshake takes about 3,000 bytes, as does an answer with its events.
    line.lives = () => 100 + chance.below(chance.once(4) ? 3000 : 20_000);
    line.cutAll();
    const isEnough = () => line.cuts >= 100;
    await Promise.all(talkers.map((talker) => talker.talk(isEnough, 50)));
    line.lives = () => Number.POSITIVE_INFINITY;
    await Promise.all(talkers.map((talker) => talker.say()));
    await soon(() => talkers.filter((talker) => !hasHeardAll(open.root, talker))).toEqual([]);
    for (const talker of talkers) expectNothingLost(open.root, talker);
    expect(talkers.flatMap(({ failures }) => failures)).toEqual([]);
    expect(Math.min(...talkers.map(({ opened }) => opened))).toBeGreaterThan(1);
  });
});
