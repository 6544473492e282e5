import type { LogEvent } from '@/api/types'

/** Pauses in ms that are longer than this are shortened to it. */
export const LONGEST = 2_000

/** A server-sent event: its id, and its data as JSON. */
export interface Frame {
  id: string
  data: string
}

/** A chunk of a response, and the ms since the start of its run, with shortened pauses. */
export interface Beat<Chunk> {
  time: number
  chunk: Chunk
}

/** Parse a complete stream of server-sent events. Comments and the end mark are left out. */
export function framesOf(stream: string): Frame[] {
  return stream.split('\n\n').flatMap((block) => {
    const lines = block.split('\n')
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? ''
    const data = field('data')
    return data && data !== '[DONE]' ? [{ id: field('id'), data }] : []
  })
}

/** Return the time of each chunk. Its frame's id starts with the `seq` of its event; a frame without id has the time of the one before. */
export function timeline<Chunk>(
  frames: readonly Frame[],
  events: readonly Pick<LogEvent, 'seq' | 'at'>[],
): Beat<Chunk>[] {
  const times = new Map<number, number>()
  let [time, before] = [0, events[0]?.at ?? 0]
  for (const { seq, at } of events) {
    time += Math.min(LONGEST, Math.max(0, (at - before) / 1_000)) // in the log, times are in µs
    before = at
    times.set(seq, time)
  }
  let latest = 0
  return frames.map(({ id, data }) => {
    latest = Math.max(latest, times.get(Number.parseInt(id, 10)) ?? latest)
    return { time: latest, chunk: JSON.parse(data) as Chunk }
  })
}
