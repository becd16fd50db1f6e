// Takes a stream of bytes apart into server-sent events. It knows the format and nothing of what is told.

/** Yields `{ event, data }` for each event, and null for each comment: a sign of life. */
export async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split('\n\n');
      rest = blocks.pop();
      for (const block of blocks) yield parsed(block);
      if (!blocks.length) yield null;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(block) {
  let event = 'message';
  const data = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) event = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
  }
  return data.length ? { event, data: JSON.parse(data.join('\n')) } : null;
}
