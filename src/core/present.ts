type IsSure<Value> = null extends Value ? false : undefined extends Value ? false : true;

/** The fields of `T`, those that may be `undefined` or `null` optional. */
export type Present<T> = {
  [Field in keyof T as IsSure<T[Field]> extends true ? Field : never]: T[Field];
} & {
  [Field in keyof T as IsSure<T[Field]> extends true ? never : Field]?: NonNullable<T[Field]>;
};

/** The same object without what is `undefined` or `null`: in what we answer, absence is absence. */
export function present<T extends object>(fields: T): Present<T> {
  const there: Record<string, unknown> = {};
  // By names: pairs would be made for each field, and every row of every list comes through here.
  for (const name of Object.keys(fields)) {
    const value = (fields as Record<string, unknown>)[name];
    if (value === undefined || value === null) continue;
    // As a field like any other: to assign it would change the object's prototype.
    if (name === "__proto__") Object.defineProperty(there, name, { value, enumerable: true });
    else there[name] = value;
  }
  return there as Present<T>;
}
