import fc from "fast-check";
import { expect, test } from "vitest";
import { readBase64 } from "./base64.ts";

test("base64 is decoded as it was encoded", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), (bytes) => {
      const text = Buffer.from(bytes).toString("base64");
      expect(readBase64(text)).toEqual({ bytes: Buffer.from(bytes), isExact: true });
      expect(readBase64(Buffer.from(bytes).toString("base64url"))?.bytes).toEqual(Buffer.from(bytes));
      expect(readBase64(`data:image/png;base64,${text.replace(/.{3}/g, "$&\n")}`)).toEqual({
        bytes: Buffer.from(bytes),
        isExact: false,
      });
    }),
  );
});

test("other text is invalid; exact only if it would be encoded the same", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: fc.constantFrom(..."AZaz09+/=-_ \nŁ") }),
  );
  fc.assert(
    fc.property(text, (each) => {
      const read = readBase64(each);
      if (read?.isExact === true) expect(read.bytes.toString("base64")).toBe(each);
      else expect(/^(?:[A-Za-z0-9+/]{4})+$/.test(each)).toBe(false);
    }),
  );
});

test.each(["", "=", "====", "A", "A===", "AA=A", "AAAAA", "ŁŁŁŁ", "AA\0A", "data:image/png;base64"])(
  "%j is invalid",
  (text) => {
    expect(readBase64(text)).toBeNull();
  },
);

test("twenty megabytes are decoded without a stack overflow", () => {
  const text = "A".repeat(20_000_000);
  expect(readBase64(text)?.bytes).toHaveLength(15_000_000);
  expect(readBase64(`${text}!!!!`)).toBeNull();
});
