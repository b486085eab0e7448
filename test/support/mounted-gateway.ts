// A Skein instance's gateway in its own server, called over HTTP.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { MethodName, Params, Result } from "../../src/entry-client.ts";
import type { Skein } from "../../src/index.ts";

export interface MountedOverHttp {
  readonly url: string;
  /** Rejects with the error if the call is refused. */
  call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>>;
  close(): Promise<void>;
}

/** `dir` is the instance's folder, which contains its token. */
export async function mountOverHttp(skein: Skein, dir: string): Promise<MountedOverHttp> {
  const gateway = await skein.mount();
  const server = createServer(gateway.handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const authorization = `Bearer ${readFileSync(join(dir, "token"), "utf8").trim()}`;
  return {
    url,
    call: async <M extends MethodName>(method: M, params: Params<M>) => {
      const answer = await fetch(`${url}/rpc/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization },
        body: JSON.stringify(params),
      });
      const body = await answer.json();
      if (!answer.ok) throw (body as { readonly error: unknown }).error;
      return body as Result<M>;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await gateway.close();
    },
  };
}
