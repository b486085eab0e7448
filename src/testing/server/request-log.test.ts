import { expect, test } from "vitest";
import { messagesRequest } from "../../../test/support/twins.ts";
import { RequestLog } from "./request-log.ts";

test("[TWN2] of very many requests the newest 1,000 are kept", () => {
  const log = new RequestLog();
  for (let round = 0; round < 1010; round += 1) log.add({ ...messagesRequest({ round }), refusal: null }, 10);
  expect(log.requests).toHaveLength(1000);
  expect(log.requests[0]?.body).toMatchObject({ round: 10 });
  expect(log.requests.at(-1)?.body).toMatchObject({ round: 1009 });
});

test("[TWN2] of very large ones as many as come to 256 MB, and the last in any case", () => {
  const log = new RequestLog();
  const mebibyte = 1024 * 1024;
  for (let round = 0; round < 10; round += 1) {
    log.add({ ...messagesRequest({ round }), refusal: null }, 60 * mebibyte);
  }
  expect(log.requests.map(({ body }) => (body as { round: number }).round)).toEqual([6, 7, 8, 9]);
  log.add({ ...messagesRequest({ round: 10 }), refusal: null }, 300 * mebibyte);
  expect(log.requests).toHaveLength(1);
});
