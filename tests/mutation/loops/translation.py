"""Sequence-to-sequence translation with attention: an encoder and a decoder with an optimizer each, teacher forcing,
one sentence pair per iteration, greedy decoding of some examples."""

import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SOS_token, EOS_token = 0, 1
MAX_LENGTH = 10
teacher_forcing_ratio = 0.5


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.dropout = nn.Dropout(0.1)
        self.gru = nn.GRU(hidden_size, hidden_size)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)).unsqueeze(1))


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.dropout = nn.Dropout(0.1)
        self.gru = nn.GRU(2 * hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, input, hidden, encoder_outputs):
        embedded = self.dropout(self.embedding(input)).view(1, 1, -1)
        scores = torch.einsum("oih,sih->s", hidden, encoder_outputs)
        context = torch.einsum("s,sih->ih", F.softmax(scores, dim=0), encoder_outputs).unsqueeze(0)
        output, hidden = self.gru(torch.cat([embedded, context], dim=2), hidden)
        return F.log_softmax(self.out(output[0]), dim=1), hidden


def tensor_from_sentence(lang, sentence):
    indexes = [lang[word] for word in sentence.split(" ")]
    indexes.append(EOS_token)
    return torch.tensor(indexes, dtype=torch.long, device=device)


def train_pair(input_tensor, target_tensor, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    encoder_outputs, hidden = encoder(input_tensor)
    decoder_input = torch.full((1,), SOS_token, device=device)
    loss = 0
    use_teacher_forcing = random.random() < teacher_forcing_ratio
    for di in range(target_tensor.size(0)):
        decoder_output, hidden = decoder(decoder_input, hidden, encoder_outputs)
        loss += criterion(decoder_output, target_tensor[di].unsqueeze(0))
        if use_teacher_forcing:
            decoder_input = target_tensor[di]
        else:
            decoder_input = decoder_output.argmax(dim=1)
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.detach() / target_tensor.size(0)


def train_iters(encoder, decoder, pairs, input_lang, output_lang, n_iters, print_every=1000, learning_rate=0.01):
    encoder.train()
    decoder.train()
    start = time.time()
    plot_losses = []
    print_loss_total = 0
    encoder_optimizer = optim.SGD(encoder.parameters(), lr=learning_rate)
    decoder_optimizer = optim.SGD(decoder.parameters(), lr=learning_rate)
    criterion = nn.NLLLoss()
    for iteration in range(1, n_iters + 1):
        source, target = random.choice(pairs)
        input_tensor = tensor_from_sentence(input_lang, source)
        target_tensor = tensor_from_sentence(output_lang, target)
        loss = train_pair(
            input_tensor, target_tensor, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion
        )
        print_loss_total += loss
        if iteration % print_every == 0:
            average = print_loss_total.item() / print_every
            print_loss_total = 0
            plot_losses.append(average)
            print(f"{time.time() - start:.0f} s ({iteration} {iteration / n_iters:.0%}) {average:.4f}")
    return plot_losses


@torch.no_grad()
def translate(encoder, decoder, sentence, input_lang, words):
    encoder.eval()
    decoder.eval()
    encoder_outputs, hidden = encoder(tensor_from_sentence(input_lang, sentence))
    decoder_input = torch.full((1,), SOS_token, device=device)
    decoded = []
    for _ in range(MAX_LENGTH):
        decoder_output, hidden = decoder(decoder_input, hidden, encoder_outputs)
        decoder_input = decoder_output.argmax(dim=1)
        token = decoder_input.item()
        if token == EOS_token:
            break
        decoded.append(words[token])
    return " ".join(decoded)


def show_examples(encoder, decoder, pairs, input_lang, words, n=10):
    for _ in range(n):
        source, target = random.choice(pairs)
        print(">", source)
        print("=", target)
        print("<", translate(encoder, decoder, source, input_lang, words))


def main(pairs, input_lang, output_lang, words, hidden_size=256):
    encoder = EncoderRNN(len(input_lang), hidden_size).to(device)
    decoder = AttnDecoderRNN(hidden_size, len(output_lang)).to(device)
    losses = train_iters(encoder, decoder, pairs, input_lang, output_lang, 75_000, print_every=5000)
    show_examples(encoder, decoder, pairs, input_lang, words)
    return losses
