"""Neural style transfer: the pixels of an image are optimized with L-BFGS, whose closure runs forward and backward."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torchvision.models import VGG19_Weights, vgg19
from torchvision.transforms import functional as TF

STYLE_LAYERS = (0, 5, 10, 19, 28)
CONTENT_LAYER = 21


def load_image(path, size, device):
    image = TF.center_crop(TF.resize(Image.open(path).convert("RGB"), size), size)
    return TF.to_tensor(image).unsqueeze(0).to(device)


def gram_matrix(features):
    b, c, h, w = features.shape
    flat = features.reshape(b, c, h * w)
    return flat @ flat.transpose(1, 2) / (c * h * w)


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        # no mutant eval: convolutions and ReLU are the same in both modes
        self.layers = vgg19(weights=VGG19_Weights.DEFAULT).features[:30].eval()
        for parameter in self.layers.parameters():
            parameter.requires_grad_(False)
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))

    def forward(self, image):
        x = (image - self.mean) / self.std
        styles, content = [], None
        for index, layer in enumerate(self.layers):
            x = layer(x)
            if index in STYLE_LAYERS:
                styles.append(gram_matrix(x))
            if index == CONTENT_LAYER:
                content = x
        return styles, content


def run_style_transfer(extractor, content_img, style_img, num_steps=300, style_weight=1e6, content_weight=1.0):
    style_targets = [target.detach() for target in extractor(style_img)[0]]
    content_target = extractor(content_img)[1].detach()
    input_img = content_img.clone().requires_grad_(True)
    optimizer = torch.optim.LBFGS([input_img])
    history = []

    run = 0
    while run <= num_steps:

        def closure():
            nonlocal run
            optimizer.zero_grad()
            styles, content = extractor(input_img)
            style_loss = sum(F.mse_loss(s, t) for s, t in zip(styles, style_targets))
            content_loss = F.mse_loss(content, content_target)
            loss = style_weight * style_loss + content_weight * content_loss
            loss.backward()
            run += 1
            if run % 50 == 0:
                print(f"run {run}: style {style_loss.item():.6f} content {content_loss.item():.6f}")
                history.append(loss.item())
            return loss

        optimizer.step(closure)
        with torch.no_grad():  # no mutant no_grad: torch refuses to change a leaf in place
            input_img.clamp_(0, 1)

    return input_img.detach(), history  # no mutant detach: the image is a leaf, it has no graph


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("content")
    parser.add_argument("style")
    parser.add_argument("--size", type=int, default=512)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    content, style = load_image(args.content, args.size, device), load_image(args.style, args.size, device)
    result, losses = run_style_transfer(Features().to(device), content, style)
    TF.to_pil_image(result[0].cpu()).save("stylized.png")
    print(losses)
