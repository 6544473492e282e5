/** Return a few round axis steps from 0 to at least the greatest value. */
export function steps(greatest: number): number[] {
  if (!(greatest > 0)) return [0, 1]
  const rough = greatest / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough
  return Array.from({ length: Math.ceil(greatest / step - 1e-9) + 1 }, (_, at) => at * step)
}
