import { afterEach, beforeEach, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let folder: TemporaryFolder;
let gateway: WholeGateway | null = null;
beforeEach(() => {
  folder = temporaryFolder("skein-start-again-");
});
afterEach(async () => {
  await gateway?.close();
  folder.remove();
});

test("[GST19] start names the options that a running gateway does not apply", async () => {
  gateway = await wholeGateway({ folder });
  const { root, url } = gateway;
  const start = (...given: string[]) =>
    run(["start", "--dir", root, ...given], { cwd: folder.path, home: folder.path });
  const other = await start("--port", "1", "--host", "0.0.0.0", "--expose");
  const same = await start("--port", new URL(url).port);
  expect(other).toMatchObject({ exit: 0, err: "" });
  expect(other.out).toContain(
    "--port 1 --host 0.0.0.0 --expose were not applied. To change this, stop the running gateway first.",
  );
  expect(same.out).toContain("is already running for this folder");
  expect(same.out).not.toContain("was not applied");
});
