/** A clock that can be paused and sped up. Its time starts at 0 and is in ms. */
export class Pace {
  private shown = 0
  private since = performance.now()
  private wake = () => {}
  private factor = 1
  private halted = false
  private readonly ending = new AbortController()

  get now(): number {
    return this.halted ? this.shown : this.shown + (performance.now() - this.since) * this.factor
  }

  get paused(): boolean {
    return this.halted
  }

  get stopped(): boolean {
    return this.signal.aborted
  }

  /** Aborted when the clock is stopped. */
  get signal(): AbortSignal {
    return this.ending.signal
  }

  pause(paused: boolean): void {
    this.change(() => {
      this.halted = paused
    })
  }

  speed(factor: number): void {
    this.change(() => {
      this.factor = factor
    })
  }

  /** End all waits, now and later. */
  stop(): void {
    this.ending.abort()
    this.wake()
  }

  /** Wait until the clock shows this time, or is stopped. */
  async until(time: number): Promise<void> {
    while (!this.stopped && this.now < time) {
      const left = this.halted ? null : (time - this.now) / this.factor
      await new Promise<void>((resolve) => {
        const timer = left === null ? undefined : setTimeout(resolve, Math.ceil(left))
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  private change(apply: () => void): void {
    this.shown = this.now
    this.since = performance.now()
    apply()
    this.wake()
  }
}
