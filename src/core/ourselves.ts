/** Who we are, as programs of others are told that we start or reach. */
export const ourselves = { name: "skein", version: "0.1.0" } as const;
