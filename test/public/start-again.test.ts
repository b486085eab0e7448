import { expect, test } from "vitest";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

test("[GST19] start says that a running gateway keeps its port", async () => {
  const folder = temporaryFolder("skein-start-again-");
  const gateway = await wholeGateway({ folder });
  const start = (port: string) =>
    run(["start", "--dir", gateway.root, "--port", port], { cwd: folder.path, home: folder.path });
  const own = new URL(gateway.url).port;
  const other = await start("1");
  const same = await start(own);
  await gateway.close();
  folder.remove();
  expect(other).toMatchObject({ exit: 0, err: "" });
  expect(other.out).toContain(
    "--port 1 was not applied. To change the port, stop the running gateway first.",
  );
  expect(same.out).toContain("is already running on this folder");
  expect(same.out).not.toContain("was not applied");
});
