import { useState } from 'react'
import { address } from '@/api/client'
import { type Form, useForms } from '@/data/sharing'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Failed, Loading } from '@/ui/States'

interface Props {
  conversation: string
  onClose: () => void
}

/** The formats that a conversation can be taken away in, each with what it keeps. */
export default function Export({ conversation, onClose }: Props) {
  const { data, error, refetch } = useForms()
  const [share, setShare] = useState(false)
  const [chosen, setChosen] = useState('html')
  const forms = data?.data.filter((form) => !share || form.shareable) ?? []
  const form = forms.find((one) => one.id === chosen) ?? forms[0]
  return (
    <Dialog title="Export" onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5">
        {error ? <Failed error={error} again={() => void refetch()} /> : !data && <Loading rows={4} />}
        {form && (
          <>
            <fieldset>
              <legend className="sr-only">Format</legend>
              {forms.map((one) => (
                <label
                  key={one.id}
                  className="flex min-h-11 cursor-pointer items-start gap-3 rounded-lg px-2 py-1.5 text-sm hover:bg-hover"
                >
                  <input
                    type="radio"
                    name="format"
                    value={one.id}
                    checked={one.id === form.id}
                    onChange={() => setChosen(one.id)}
                    className="mt-0.5 size-4 shrink-0 accent-accent"
                  />
                  <span>
                    <span className="font-medium">{one.id}</span> <span className="text-muted">{one.words}</span>
                    {one.id === form.id && <Keeps form={one} />}
                  </span>
                </label>
              ))}
            </fieldset>
            <label className="flex min-h-9 cursor-pointer items-center gap-3 px-2 text-sm">
              <input
                type="checkbox"
                checked={share}
                onChange={(event) => setShare(event.target.checked)}
                className="size-4 shrink-0 accent-accent"
              />
              For others: leave out secrets, home folders, names and e-mails
            </label>
            <div className="flex justify-end gap-2">
              <Button onClick={onClose}>Cancel</Button>
              <Button
                look="primary"
                onClick={() => {
                  download(
                    address(`/conversations/${encodeURIComponent(conversation)}/export`, { format: form.id, share }),
                  )
                  onClose()
                }}
              >
                Download
              </Button>
            </div>
          </>
        )}
      </div>
    </Dialog>
  )
}

function Keeps({ form }: { form: Form }) {
  if (!form.kept.length) return null
  return (
    <span className="mt-0.5 block text-xs text-muted">
      Keeps {form.kept.join(', ')}
      {form.approximated.length > 0 && `; in another form: ${form.approximated.join(', ')}`}
    </span>
  )
}

function download(url: string) {
  const link = document.createElement('a')
  link.href = url
  link.download = ''
  link.click()
}
